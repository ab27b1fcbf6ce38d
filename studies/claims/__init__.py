"""Claims: statements about a study's cells, checked for errors before there are results.

`reader` reads the tables of a file. `parser` builds the tree of a claim, and `resolver` expands it into
`comparisons` of the cells in its `scope`. `units` says which numbers may be compared.

The grammar, loosest binding first:

claim      = either END
    either     = both { "or" both }
    both       = denial { "and" denial }
    denial     = { "not" } relation
    relation   = sum { sign sum }                 a > b > c holds if both do; sign = > >= < <= == !=
               | sum "within" NUMBER "of" sum
               | sum ( "is" level | "in" set )    after best, worst, argmax, argmin
    sum        = [ "-" ] quotient { ( "+" | "-" ) quotient }
    quotient   = term { "/" term }
    term       = NUMBER | call | quantity | VARIABLE | "(" either ")"
    call       = FUNCTION "(" either { "," either } { "for" VARIABLE "in" set } ")"
    quantity   = METRIC [ "[" { INDEX } { FACTOR "=" level } "]" ]    with commas between
    set        = ( FACTOR | "[" level { "," level } "]" ) [ "except" "[" level { "," level } "]" ]

The functions all and any take statements. min, max, mean and law take numbers, seed by seed. best, worst,
argmax and argmin take the levels of one factor. A level is written as in the study file, in any spelling of
its recipe.
"""
