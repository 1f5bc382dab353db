"""Strictness for every test: double precision, no silent broadcasting, shapes checked."""

import jax
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")

install_import_hook("metaprior", "beartype.beartype")
