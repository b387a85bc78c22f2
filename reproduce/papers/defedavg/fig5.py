"""Fig. 5: convergence over virtual time with n = 80 participants."""

from reproduce.papers.defedavg.times import artifact

ARTIFACT = artifact(5, 80)
