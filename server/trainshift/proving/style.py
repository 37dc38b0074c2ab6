"""The style of the page of a proof, light and dark.

A viewer of the page may override the colours: they are variables.
"""

from __future__ import annotations

COLOURS = 9
"""The number of colours of lines: the classes s0 to s8."""

STYLE = """
:root {
  --ink: #1b1f24; --soft: #5b6570; --line: #d9dee3; --paper: #fff; --back: #f5f7f8;
  --holds: #2b8a3e; --fails: #c92a2a; --unseen: #946200;
  --s0: #0b7285; --s1: #e8590c; --s2: #5f3dc4; --s3: #2b8a3e; --s4: #c2255c;
  --s5: #1864ab; --s6: #846358; --s7: #5b6570; --s8: #1b1f24;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e8eaed; --soft: #a3adb7; --line: #3a4149; --paper: #1e2329; --back: #14181c;
    --holds: #69db7c; --fails: #ff8787; --unseen: #ffc078;
    --s0: #3bc9db; --s1: #ffa94d; --s2: #b197fc; --s3: #69db7c; --s4: #f783ac;
    --s5: #74c0fc; --s6: #d0a891; --s7: #a3adb7; --s8: #e8eaed;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, sans-serif;
}
main { max-width: 1040px; margin: 0 auto; padding: 28px 20px 60px; overflow-wrap: anywhere; }
h1 { font-size: 26px; line-height: 1.3; margin: 0 0 10px; }
header { margin: 0 0 18px; }
.made { color: var(--soft); margin: 0 0 2px; font-size: 13px; }
.headline { font-size: 19px; line-height: 1.6; color: var(--ink); }
.headline strong { font-weight: 600; }
.facts {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 320px), 1fr)); gap: 8px 22px;
  margin: 0; padding-top: 12px; border-top: 1px solid var(--line); font-size: 13px;
}
.facts dt { color: var(--soft); }
.facts dd { margin: 0; }
h2 { font-size: 17px; margin: 34px 0 10px; }
.about { color: var(--soft); margin: 0 0 14px; }
.about p { margin: 6px 0; }
.verdict {
  display: inline-block; padding: 2px 14px; margin-right: 10px; border-radius: 18px;
  background: var(--mark); color: var(--paper); font-weight: 600;
}
.holds { --mark: var(--holds); }
.fails { --mark: var(--fails); }
.not-seen, .error { --mark: var(--unseen); }
.claims, figure { background: var(--paper); border: 1px solid var(--line); border-radius: 8px; }
.claims { list-style: none; margin: 0; padding: 0; }
.claims li {
  display: grid; grid-template-columns: 96px minmax(0, 1fr); gap: 3px 14px; padding: 11px 16px;
  border-top: 1px solid var(--line);
}
.claims li:first-child { border-top: 0; }
.mark { color: var(--mark); font-weight: 600; white-space: nowrap; }
.title { font-weight: 600; }
.says, .do, .read { grid-column: 2; }
.do { font-weight: 600; }
.read { color: var(--soft); }
code { font: 13px/1.45 ui-monospace, monospace; color: inherit; background: none; padding: 0; }
a code { color: inherit; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 16px; }
figure { margin: 0; padding: 12px 14px; min-width: 0; }
figcaption { font-weight: 600; margin-bottom: 6px; }
figure p { margin: 4px 0 0; color: var(--soft); font-size: 13px; }
.wide { grid-column: 1 / -1; }
svg { width: 100%; height: auto; display: block; overflow: visible; }
svg text { fill: var(--soft); font: 13px system-ui, sans-serif; }
svg .axis { stroke: var(--line); stroke-width: 1; }
svg polyline { fill: none; stroke: var(--hue); stroke-width: 2; stroke-linejoin: round; }
svg circle, svg rect { fill: var(--hue); }
svg.time { height: 34px; }
svg .step { stroke: var(--paper); stroke-width: 1; vector-effect: non-scaling-stroke; }
.ends { display: flex; justify-content: space-between; margin-top: 3px; font-size: 13px; color: var(--soft); }
.key { display: flex; flex-wrap: wrap; gap: 4px 14px; margin-top: 4px; font-size: 13px; color: var(--soft); }
.key i {
  display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 5px;
  background: var(--hue);
}
.bars {
  display: grid; grid-template-columns: max-content minmax(40px, 1fr) max-content; gap: 14px 10px;
  margin: 16px 0;
}
.bar { align-self: center; }
.bar i { display: block; height: 26px; min-width: 2px; border-radius: 3px; background: var(--hue); }
.number { text-align: right; }
@media (max-width: 520px) {
  .claims li { grid-template-columns: minmax(0, 1fr); }
  .says, .do, .read { grid-column: 1; }
  svg text { font-size: 17px; }
}
""" + "".join(f".s{number} {{ --hue: var(--s{number}); }}\n" for number in range(COLOURS))
