// Looks at the page of a proof in a browser: `node proof_page.mjs ADDRESS PLAYWRIGHT [PICTURE]`; prints what it saw as JSON.
import { createRequire } from "node:module";

const [address, folder, picture] = process.argv.slice(2);
const { chromium } = createRequire(folder)("playwright-core");
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const page = await browser.newPage({ viewport: { width: 1100, height: 1500 } });
const outside = [];
const failed = [];
page.on("request", (request) => request.url() === address || outside.push(request.url()));
page.on("pageerror", (error) => failed.push(String(error)));

await page.goto(address);
if (picture) {
  // As far as the last claim that fails.
  await page.setViewportSize({ width: 860, height: 1500 });
  const last = await page.locator(".claims li.fails").last().boundingBox();
  const clip = { x: 0, y: 0, width: 860, height: last.y + last.height + 16 };
  await page.screenshot({ path: picture, clip, animations: "disabled" });
  await page.setViewportSize({ width: 1100, height: 1500 });
}
const verdict = await page.locator(".verdict").innerText();
const about = await page.locator(".about").innerText();
const header = await page.locator("header").innerText();
const badge = await page.locator("main > svg[role=img]").evaluateAll((items) =>
  items.map((each) => ({
    texts: Array.from(each.querySelectorAll("text"), (text) => text.textContent),
    // With the letters neither pressed nor pulled much.
    fits: Array.from(each.querySelectorAll("text")).every((text) => {
      const given = text.getComputedTextLength();
      text.removeAttribute("textLength");
      return Math.abs(text.getComputedTextLength() / given - 1) < 0.15;
    }),
  })),
);
const claims = await page
  .locator(".claims li")
  .evaluateAll((items) => Object.fromEntries(items.map((each) => [each.id, each.className])));
const marked = await page.locator("#output").innerText();
const plots = await page.locator("figure").evaluateAll((items) =>
  items.map((each) => ({
    title: each.querySelector("figcaption").textContent,
    shapes: each.querySelectorAll("polyline, circle, rect, .bar i").length,
    width: each.querySelector("svg, .bars")?.getBoundingClientRect().width ?? 0,
    text: each.innerText,
  })),
);
// Whether it fits, and how high the smallest text is, by the width of the window; its paper by the theme.
const sizes = {};
for (const width of [1100, 700, 360]) {
  await page.setViewportSize({ width, height: 900 });
  sizes[width] = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth > window.innerWidth,
    text: Math.min(
      ...Array.from(document.querySelectorAll("figure svg text"), (each) => each.getBoundingClientRect().height),
    ),
    over: Array.from(document.querySelectorAll("figure svg text"))
      .filter((each) => each.getBoundingClientRect().left < each.closest("figure").getBoundingClientRect().left)
      .map((each) => each.textContent),
  }));
}
const paper = {};
for (const colorScheme of ["light", "dark"]) {
  await page.emulateMedia({ colorScheme });
  paper[colorScheme] = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
}
await browser.close();
console.log(JSON.stringify({ verdict, about, header, badge: badge[0], claims, marked, plots, sizes, paper, outside, failed }));
