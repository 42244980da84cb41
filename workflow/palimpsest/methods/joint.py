"""Joint: all tasks at once, from fresh weights; what could be learned if nothing came in sequence."""

from palimpsest.methods._declaration import Declaration, NoHyperparameters

REFERENCE = (
    "A. Chaudhry, P. K. Dokania, T. Ajanthan, P. H. S. Torr, Riemannian walk for incremental learning, ECCV 2018, "
    "section 3 (the reference model of intransigence)"
)
DECLARATION = Declaration(stores_raw_data=True, needs_task_boundaries=True, pairing="init", schedule="joint")
Hyperparameters = NoHyperparameters
