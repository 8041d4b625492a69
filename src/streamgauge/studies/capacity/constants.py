"""Every constant of the searches, in the order in which a search needs them, each with its source.

*Measured*: in searches whose figures stand here. *Chosen*: a cautious
value that no measurement supports yet. Karimov: Karimov et al. 2018. What one engine shows near its limit is in its
`NearLimit`. `CEILING_SHARE`, `ABOUT_90_PERCENT` and `FAR_ABOVE` affect an answer; the others affect which load is next.
"""

SLACK = 1e-9
"""Relative difference by which rounding may move a rate. Chosen."""

# Rates that generators can offer.
CEILING_SHARE = 0.9
"""Greatest share of the generators' ceiling in a trial: at the ceiling itself they cannot keep a plan. Chosen."""

# Climbing in an overload trial. Karimov begins at a very high rate instead; batches of that size take minutes.
FIRST_RATE_PER_S = 100_000.0
"""Rate of the first step. Chosen: an engine that cannot keep up with it is judged slowly, but still within a step."""
STEP, STEP_WHERE_NEAR = 8.0, 2.0
"""Next step's rate over this one's, if the engine kept up, and if it nearly did. Chosen."""
FIRST_S, STEP_S, LAST_S = 14.0, 8.0, 20.0
"""Length of the first step, in which a fresh engine starts its workers, of others, and of the one that counts.
Chosen."""
PACE_S = 3.0
"""Event time that may wait: more than an engine's trigger leaves waiting. Chosen."""
PACE_SHARE_MAX = 0.9
"""Largest share of the queue's bound that may wait of what a program's progress does not show yet. Chosen."""
BATCHES_MIN = 3
"""Batches that a drain rate needs. Chosen."""
FAR_SHARE, LARGER = 0.25, 1.5
"""If the engine drained less than this share of a step's rate, its batches were many times those of a trial. The step
is then repeated with smaller batches. Chosen, after a join that drained 15 k/s in batches of 150,000 events."""
CLIMB_SHARE, KEPT_UP_SHARE = 0.8, 0.95
"""Share of a step's rate that counts as keeping up, and of the last step's rate and the generators' ceiling. Chosen: a
few batches measure no better, and the next step corrects it."""
CLOSING_S_MAX = 30.0
"""Longest wait for the ends of windows in a step. Chosen."""
UNSEEN_SLACK_S = 3.0
"""A step lasts so much longer than two moves of progress that is seen late, which come later under load. Chosen."""
SILENT_GAPS = 2.0
"""An engine that did nothing for so many times its longest gap until a step's end stands still. Chosen."""

# Approaching the limit from below.
BUSY_SHARE_MIN, APPROACH_SHARE_MIN, APPROACH_SHARE_MAX = 0.3, 0.6, 0.97
"""Batches of a climbed step that need at least this share of the time predict a limit near which an approach is made.
Batches of an approach that need a share between the others predict it well: below, it is far away; above, the engine is
full. Chosen."""
APPROACH_FACTOR, APPROACH_FACTOR_WARM, APPROACH_STEP_MAX = 0.75, 0.85, 3.0
"""Rate of the first and of later approaches over the limit expected, and of an approach over the step before. Chosen:
what a cold engine drains is taken for its limit, because its batches are larger than those of a trial."""
APPROACHES_MIN, APPROACHES_MAX = 2, 3
"""The first approach also warms the engine. Measured: batches of a join needed 0.74 of the time at 545 k/s, and half of
it at 519 k/s minutes later."""

# The next load of a bracket.
FAILED_OVERESTIMATE_FACTOR = 1.05
"""Drain rate over sustained rate, of a judged trial that fell behind. Chosen."""
SWAMPED_SHARE = 0.97
"""An engine that takes a smaller share of the offered events has a backlog, so what it takes is near its limit.
Chosen."""
PROMISED_MAX, STEP_MAX, WIDE = 4.0, 64.0, 1.5
"""The longest step by an idle engine's busy share, the longest of all, and the factor of a wide bracket. Chosen."""
SHORT_STEPS_MAX = 5
"""After so many short steps that all held, busy shares predict nothing: batches of some engines fill nearly all their
time at any rate. Chosen."""
GROWTH_UP, GROWTH_DOWN, GROWTH_UNPROVEN = 2, 3, 1.5
"""Exponents by which steps grow: faster down than up, since a drain rate is more often too high than too low; slowly
after a rate that was not proven, which is more often near the limit than far away. Chosen."""
FAR_STEP, FAR_GROWTH = 1.2, 5
"""Only a search that started far away takes steps this long; they grow faster. Chosen."""
GUESSES_MAX = 3
"""How often a rate that starves the driver is lowered before any held: a driver that fails at any rate has a fault.
Chosen."""
SPARE_TRIALS = 1
"""Trials that busy shares may cost a whole grid beyond a plain bisection, if they mislead. Source: the slack n0 of the
ITP method (Oliveira and Takahashi 2021), which bounds interpolation in the same way."""

# The confirmation. Karimov confirms both at the rate and at 90 % of it.
CONFIRM_STEP_MAX = 1.25
"""The longest step down to the next confirmation, whatever busy shares say. Chosen."""
ABOUT_90_PERCENT = (0.85, 0.955)
"""A trial at such a share of the confirmed rate counts as the trial at 90 %; the rate a default width below is one."""
FAR_ABOVE = 1.25
"""An engine that was offered more than so many times a rate confirms it no longer. Chosen."""
DRAIN_TIMEOUT_S = 90.0
"""Longest wait for the backlog of a trial before the next one on the same engine. Chosen."""
SHARE_BELOW = 0.9
"""Rate of a second confirmation over the answer. Karimov."""

# The size of a search.
TOLERANCE, TRIALS_MAX = 0.05, 16
"""Relative width of the bracket and most trials, if the settings name none. Chosen."""
TRIALS_TYPICAL, STARTS_TYPICAL = 8, 2
"""Trials of a search, and starts of an engine: for the overload trial, and for the bracket or the confirmation. Used
only to foresee how long a search or a matrix takes. Measured: 5 to 11 trials in 7 to 14 min, with a median of 9.6 min,
where 8.6 min are foreseen."""
