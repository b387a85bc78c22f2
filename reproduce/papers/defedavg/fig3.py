"""Fig. 3: convergence over virtual time with n = 20 participants."""

from reproduce.papers.defedavg.times import artifact

ARTIFACT = artifact(3, 20)
