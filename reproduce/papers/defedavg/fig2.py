"""Fig. 2: convergence over virtual time with n = 10 participants."""

from reproduce.papers.defedavg.times import artifact

ARTIFACT = artifact(2, 10)
