r"""A term is one of eighteen constructs; everything else is written with them.

    e ::= c | x | e + e | e * e | λx. e | @ e e | let x = e in e
        | fst e | snd e | (e, e) | ref e | !e | e := e | inl e | inr e
        | case e of x ⇒ e or x ⇒ e | shift x in e | ⟨e⟩

`c` is `()` or a real number. In ASCII λ is `\`, ⇒ is `=>`, and ⟨e⟩ is `<e>`. Two terms side by side are a
call too, to the left: `f x y` is `@ (@ f x) y`. Comments begin with `//`, and names may end in primes.

## What reaches how far

λ, let, case, if and shift reach as far to the right as they can. From the loosest to the tightest follow `;`,
`:=` and `+=`, `+`, `*`, calls, and the words before an operand: `fst`, `snd`, `ref`, `!`, `inl`, `inr`.
"""

from __future__ import annotations
