"""The demand engine: eduction. A value is computed once, when it is demanded, and kept while it may be demanded again.

index (analyses of the graph) <- plan (rows) <- store (frames) <- run (EVAL); story writes a run as text.
"""

from undertow.engines.demand.run import Demand as Demand
from undertow.engines.demand.run import DemandPlan as DemandPlan
from undertow.engines.demand.run import explain as explain
