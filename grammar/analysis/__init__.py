"""What a model costs, keeps and reaches, computed from its tree before anything is built.

`analyse` walks the tree, `input_output_costs` has the input and the output, `seq2seq` is the encoder-decoder,
`recurrent_decoder` its recurrent blocks, and `cross_attention` says where its stacks attend to the source.
"""
