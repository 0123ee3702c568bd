"""Machine instructions that numba does not offer."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def add_pair(typing_context: Any, array: Any, at: Any, first: Any, second: Any) -> tuple[Any, Any]:
    """Add ``first`` to ``array[at]`` and ``second`` to ``array[at + 1]``, float64, as one vector.

    This takes one load, addition and store instead of two each.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature, arguments, arguments[1])
        pair = ir.VectorType(ir.DoubleType(), 2)
        place = builder.bitcast(place, pair.as_pointer())
        added = ir.Constant(pair, ir.Undefined)
        for k in range(2):
            index = ir.Constant(ir.IntType(32), k)
            added = builder.insert_element(added, arguments[2 + k], index)
        builder.store(builder.fadd(builder.load(place, align=8), added), place, align=8)
        return context.get_dummy_value()

    return types.void(array, types.uint64, types.float64, types.float64), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, at: Any) -> tuple[Any, Any]:
    """Prefetch the cache line of the ``at``-th element of a contiguous array.

    The address need not be valid.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _address(context, builder, signature, arguments, arguments[1])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        name = "llvm.prefetch.p0i8"
        function = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
        read, keep, data = (ir.Constant(number, k) for k in (0, 3, 1))
        builder.call(function, [builder.bitcast(place, byte), read, keep, data])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


def _address(context: Any, builder: Any, signature: Any, arguments: Any, at: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [at])
