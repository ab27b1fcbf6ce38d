"""What is said of the results: a claim is a sentence over a study's cells, held against them seed by seed.

A text goes through these files: `tokens` cuts it, `parser` reads it into `syntax`, `grounding` holds that
against the study's `scope` and writes it out over its cells as `statements`. `results` has what the store
says of those, `trying` decides each comparison, `checking` the claim. The language, loosest first:

    claim      = either END
    either     = both { "or" both }
    both       = denial { "and" denial }
    denial     = { "not" } relation
    relation   = sum { sign sum }                 a > b > c holds if both do; sign = > >= < <= == !=
               | sum "within" NUMBER "of" sum
               | sum ( "is" level | "in" set )    after best, worst, argmax, argmin
    sum        = [ "-" ] term { ( "+" | "-" ) term }
    term       = NUMBER | call | quantity | VARIABLE | "(" either ")"
    call       = FUNCTION "(" either { "," either } { "for" VARIABLE "in" set } ")"
    quantity   = METRIC [ "[" { INDEX } { FACTOR "=" level } "]" ]    with commas between
    set        = ( FACTOR | "[" level { "," level } "]" ) [ "except" "[" level { "," level } "]" ]

The functions are all and any of statements, min, max and mean of numbers, seed by seed, and best, worst,
argmax and argmin of the levels of one factor. A level is written as in the study file, in any spelling of its
recipe.
"""
