"""The demand engine: eduction. A value is computed once, when it is demanded, and kept while it may be demanded again.

index (what can be known of a graph beforehand) <- plan (rows) <- store (frames) <- run (EVAL); story tells it in words.
"""

from undertow.engines.demand.run import Demand as Demand
from undertow.engines.demand.run import DemandPlan as DemandPlan
from undertow.engines.demand.run import explain as explain
