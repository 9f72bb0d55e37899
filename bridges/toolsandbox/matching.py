"""The search for the best match of milestones to moments of a conversation, in ToolSandbox's stead.

Invariant: the same maximum as its own search finds, from its own measures. That one tries all assignments, which takes
minutes for six milestones in a long conversation where nothing matches. This one remembers what it has tried.
"""

import math
from bisect import bisect_right
from collections import OrderedDict
from typing import Any

from tool_sandbox.common import evaluation

Moments = dict[int, int]
Match = tuple[float, tuple[tuple[int, tuple[int, float]], ...]]


class Measure:
    """The similarity of one milestone at each moment. Moments without a database change between them share a value."""

    def __init__(self, calculator: Any) -> None:
        self._context = calculator.execution_context
        self._constraints = calculator.milestone.snapshot_constraints
        self._start = calculator.first_user_message_snapshot_index
        self._changes = {space: sorted(moments) for space, moments in calculator.database_bucket_boundary.items()}
        self._known: dict[tuple[int, int, int | None], float] = {}
        # The milestones whose moments it depends on.
        self.references = {constraint.reference_milestone_node_index for constraint in self._constraints} - {None, -1}

    def at(self, moment: int, assigned: Moments) -> float:
        """The geometric mean over the constraints; guardrails, which are 0 or 1, count for nothing in it."""
        product, count = 1.0, 0
        for number, constraint in enumerate(self._constraints):
            reference = constraint.reference_milestone_node_index
            other = None if reference is None else self._start if reference == -1 else assigned[reference]
            product *= self._single(number, constraint, moment, other)
            count += constraint.snapshot_constraint is not evaluation.guardrail_similarity
        return math.pow(product, 1 / count)

    def _single(self, number: int, constraint: Any, moment: int, other: int | None) -> float:
        space = constraint.database_namespace
        key = (number, self._changed(space, moment), None if other is None else self._changed(space, other))
        if key not in self._known:
            self._known[key] = constraint.snapshot_constraint(
                snapshot=self._context.get_database(space, sandbox_message_index=moment),
                target_dataframe=constraint.target_dataframe,
                column_similarities=constraint.column_similarity_measure,
                reference_snapshot=None
                if other is None
                else self._context.get_database(space, sandbox_message_index=other),
            )
        return self._known[key]

    def _changed(self, space: str, moment: int) -> int:
        moments = self._changes[space]
        return moments[max(bisect_right(moments, moment) - 1, 0)]


def best_match(
    _matcher: Any,
    assigned_mapping: Any,
    similarity_calculators: list[Any],
    assigned_similarity_sum: float,
    remaining_graph: Any,
    current_best_similarity_sum: float,
    min_snapshot_index: int,
    max_snapshot_index: int,
) -> tuple[OrderedDict[int, tuple[int, float]], float]:
    """ToolSandbox calls its search with nothing assigned, and with the whole graph."""
    measures = [Measure(calculator) for calculator in similarity_calculators]
    before = {milestone: set(remaining_graph.predecessors(milestone)) for milestone in remaining_graph.nodes}
    known: dict[Any, Match] = {}

    def best(remaining: frozenset[int], first: int, assigned: Moments) -> Match:
        """Returns the best match of the remaining milestones from `first` on: the sum, and each moment and measure."""
        if not remaining:
            return 0.0, ()
        needed = {reference for milestone in remaining for reference in measures[milestone].references}
        key = (
            remaining,
            first,
            tuple((reference, assigned[reference]) for reference in sorted(needed & assigned.keys())),
        )
        if key not in known:
            known[key] = search(remaining, first, assigned)
        return known[key]

    def search(remaining: frozenset[int], first: int, assigned: Moments) -> Match:
        choices = [
            (measures[milestone].at(moment, assigned), milestone, moment)
            for milestone in remaining
            if not before[milestone] & remaining
            for moment in range(first, max_snapshot_index + 1)
        ]
        found: Match = (-1.0, ())
        for measure, milestone, moment in sorted(choices, reverse=True):
            # Even measure 1 for all others is no improvement, here or in any later choice.
            if measure + len(remaining) - 1 <= found[0]:
                break
            total, rest = best(remaining - {milestone}, moment, {**assigned, milestone: moment})
            if measure + total > found[0]:
                found = (measure + total, ((milestone, (moment, measure)), *rest))
        return found

    total, match = best(frozenset(remaining_graph.nodes), min_snapshot_index, {})
    return OrderedDict(match), total


evaluation.MilestoneMatcher._dfs = best_match
