"""Fig. 4: convergence over virtual time with n = 40 participants."""

from reproduce.papers.defedavg.times import artifact

ARTIFACT = artifact(4, 40)
