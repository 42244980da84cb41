"""What a model gets of a sample: its stored input, with the pixels where the sample's task has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Inputs:
    """Inputs of samples by their rows in a table: stored ones, with the pixels of a task in their places.

    Args:
        stored: `[stored, *shape]` uint8.
        input: which stored input each sample has, `[n]`.
        moves: stored pixel of each pixel, a row for each moved task, `[task, height · width]`; −1 for none.
        task: row of `moves` of each sample, `[n]`; none where no task moves pixels.
    """

    def __init__(self, stored: np.ndarray, input: np.ndarray, moves: np.ndarray, task: np.ndarray | None) -> None:
        self.stored, self.input, self.moves, self.task = stored, input, moves, task
        self.has_gaps = bool((moves < 0).any())

    @classmethod
    def of_tables(cls, stored: np.ndarray, samples: pa.Table, moves: pa.Table) -> Inputs:
        """Inputs of the rows of a table of samples.

        Args:
            stored: `data/inputs.npy`, which may be mapped.
            samples: rows of the table `samples`, or some of its rows; the columns `task` and `input` are looked at.
            moves: rows of the table `moves`, in its order.
        """
        tasks = pc.unique(moves["task"])
        sources = pc.fill_null(moves["source"], -1).to_numpy().astype(np.int64).reshape(len(tasks) or 1, -1)
        codes = pc.index_in(samples["task"], tasks).to_numpy() if len(tasks) else None
        return cls(stored, samples["input"].to_numpy(), sources, codes)

    def __len__(self) -> int:
        return len(self.input)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Inputs of some samples by their rows in the table, `[len(rows), *shape]` uint8, in memory of their own."""
        found = self.stored[self.input[rows]]
        if self.task is None:
            return found
        pixels, of_task = found.reshape(len(found), self.moves.shape[1], -1), self.task[rows]
        for task in np.unique(of_task):
            here = of_task == task
            moved = pixels[here].take(self.moves[task], axis=1)
            if self.has_gaps:
                moved[:, self.moves[task] < 0] = 0
            pixels[here] = moved
        return found
