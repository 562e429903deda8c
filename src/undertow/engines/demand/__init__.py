"""The demand engine: eduction. A value is computed when it is asked for, once, and kept while it may be asked again.

index (what can be known of a graph beforehand) <- plan (rows) <- store (frames) <- run (EVAL); story tells it in words.
"""

from undertow.engines.demand.run import Demand as Demand
from undertow.engines.demand.run import DemandPlan as DemandPlan
from undertow.engines.demand.run import explain as explain
