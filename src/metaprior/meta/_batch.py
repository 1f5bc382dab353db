"""Batches of whole computations: trees stacked on a leading axis, worked on in bounded pieces."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, PyTree


def stack(trees: Sequence[PyTree]) -> PyTree:
    """Trees of one structure as one tree whose arrays have a leading axis."""
    structures = {jax.tree.structure(tree) for tree in trees}
    if len(structures) != 1:
        raise ValueError(
            f"Cannot stack {len(trees)} trees of {len(structures)} structures; give trees that "
            "differ in their numbers only."
        )

    def together(*leaves):
        return jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0]

    return jax.tree.map(together, *trees)


def entry(tree: PyTree, index: int | Int[np.ndarray, "..."]) -> PyTree:
    """One of the trees that were stacked, or several of them, stacked as `index` is shaped.

    The arrays are indexed on the host: on the device every shape would be a program to compile.
    """

    def chosen(leaf):
        return jnp.asarray(np.asarray(np.asarray(leaf)[index])) if eqx.is_array(leaf) else leaf

    return jax.tree.map(chosen, tree)


def map_chunks(function: Callable[[Any], Any], arrays: PyTree, chunk: int | None) -> PyTree:
    """`function` of each entry along the leading axis, at most `chunk` of them side by side.

    Everything at once if `chunk` is `None`. Memory grows with the chunk, not with the batch.
    """
    count = jax.tree.leaves(arrays)[0].shape[0]
    num_chunks = -(-count // min(chunk or count, count))
    size = -(-count // num_chunks)
    if size == 1:
        return jax.lax.map(function, arrays)
    if num_chunks == 1:
        return jax.vmap(function)(arrays)
    # Chunks of one size, so that the function is compiled once; what the last one lacks is filled
    # up with the first entries, whose second results are cut off.
    rows = jnp.arange(num_chunks * size) % count
    chunks = jax.tree.map(
        lambda leaf: leaf[rows].reshape(num_chunks, size, *leaf.shape[1:]), arrays
    )
    results = jax.lax.map(jax.vmap(function), chunks)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:count], results)


def chunk_here(chunk: int | None) -> int | None:
    """`chunk` on an accelerator. On a CPU one after another: a single computation fits the caches
    and a batch of them does not."""
    return 1 if jax.default_backend() == "cpu" else chunk
