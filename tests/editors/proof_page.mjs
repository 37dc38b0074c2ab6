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
const verdict = await page.locator(".verdict").innerText();
const claims = await page
  .locator(".claims li")
  .evaluateAll((items) => Object.fromEntries(items.map((each) => [each.id, each.className])));
const marked = await page.locator("#output").innerText();
const plots = await page.locator("figure").evaluateAll((items) =>
  items.map((each) => ({
    title: each.querySelector("figcaption").textContent,
    shapes: each.querySelectorAll("polyline, rect").length,
    width: each.querySelector("svg")?.getBoundingClientRect().width ?? 0,
  })),
);
const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
if (picture) await page.screenshot({ path: picture, fullPage: true });
await browser.close();
console.log(JSON.stringify({ verdict, claims, marked, plots, wide, outside, failed }));
