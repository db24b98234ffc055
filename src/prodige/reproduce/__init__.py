"""The experiments of the paper, each as a function that returns its figures."""
