"""Assignments of samples to clients: every partition of the five papers (docs/papers, "Models and data").

| record                                    | for                                        |
| ----------------------------------------- | ------------------------------------------ |
| `IID`, `TwoClasses`, `Shards`             | defedavg                                   |
| `ClassPerClient`                          | fedacs, MNIST                              |
| `DirichletClass`, `DirichletClient`       | fedacs, CIFAR-10 and CINIC-10              |
| `CappedDirichlet`                         | fedagrac (DP1); fiarse, AG News            |
| `Sharding`, `ShuffledBlocks`              | fedagrac (DP2, i.i.d.)                     |
| `BalancedDirichlet`                       | fiarse, CIFAR                              |
| `label_groups`, `GroupedDirichlet`        | dynamic_init, Tables 1-7, 12               |
| `GroupedShares`                           | dynamic_init, another reading              |
| `Head`                                    | fedagrac, reduced scale                    |
| `HalfLabels`, `PartialOverlap`, `TwoShard`, `DistinctLabels` | dynamic_init, Tables 8-14 |
| `DirichletSizes`, `PowerLawSizes`         | none of them: for `play`                   |
| `FeatureNoise`                            | likewise: data with noise                  |
| `FromFile`                                | likewise: of a file that others wrote      |

Each has `split(labels, clients, seed)`: one array of positions in `labels` per client, no client empty, no sample twice
(but groups with shared labels say `shares_samples`), the same for the same arguments on every machine; a
UserError when that is impossible. Records with a `data_seed` ignore the seed of
the run unless it is None, because their paper draws the partition once for all runs.
"""
