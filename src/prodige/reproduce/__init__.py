"""The experiments of the paper, each as a function that returns its figures; and one more, all methods at equal bits.

For that, a data set (:mod:`~prodige.reproduce.families`) goes to methods (:mod:`~prodige.reproduce.peers`,
:mod:`~prodige.reproduce.ours`), whose candidates a judge (:mod:`~prodige.reproduce.judging`) compares.
"""
