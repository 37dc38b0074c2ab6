"""The fifteen restrictions (spec.md 3), in the order in which they are documented and reported."""

from trainshift.restrictions import (
    tf01_import_not_at_top,
    tf02_tensorflow_rebound,
    tf03_tensorflow_member_alias,
    tf04_print_side_effect,
    tf05_dataset_or_optimizer_alias,
    tf06_dataset_or_optimizer_reassigned,
    tf07_conditional_creation,
    tf08_apply_gradients_position,
    tf09_global_optimizer_order,
    tf10_checkpoint_alias,
    tl01_loop_in_several_files,
    tl02_loop_type,
    tl03_model_with_two_loops,
    tl04_function_value,
    tl05_conditional_loop,
)
from trainshift.restrictions.restriction import Restriction

RESTRICTIONS: tuple[Restriction, ...] = (
    tf01_import_not_at_top.RULE,
    tf02_tensorflow_rebound.RULE,
    tf03_tensorflow_member_alias.RULE,
    tf04_print_side_effect.RULE,
    tf05_dataset_or_optimizer_alias.RULE,
    tf06_dataset_or_optimizer_reassigned.RULE,
    tf07_conditional_creation.RULE,
    tf08_apply_gradients_position.RULE,
    tf09_global_optimizer_order.RULE,
    tf10_checkpoint_alias.RULE,
    tl01_loop_in_several_files.RULE,
    tl02_loop_type.RULE,
    tl03_model_with_two_loops.RULE,
    tl04_function_value.RULE,
    tl05_conditional_loop.RULE,
)
