// Looks at the documentation's site as a reader does: `node site.mjs ADDRESS PLAYWRIGHT`; prints what it saw as JSON.
import { createRequire } from "node:module";

const [address, folder] = process.argv.slice(2);
const { chromium } = createRequire(folder)("playwright-core");
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const page = await browser.newPage();
const outside = [];
const failed = [];
page.on("request", (request) => request.url().startsWith(address) || outside.push(request.url()));
page.on("response", (response) => response.status() < 400 || failed.push(response.url()));
page.on("pageerror", (error) => failed.push(String(error)));

await page.goto(address);
const title = await page.locator("h1").first().innerText();
const pictures = await page
  .locator(".md-content img")
  .evaluateAll((images) => Promise.all(images.map((each) => each.decode().then(() => each.naturalWidth))));

await page.getByRole("textbox", { name: "Search" }).click();
await page.keyboard.type("scale learning rate");
const result = page.locator(".md-search-result__link", { hasText: "HV02" }).first();
await result.click();
await page.locator("h1", { hasText: "HV02" }).waitFor();
const found = new URL(page.url()).pathname;

const asked = [];
const queries = [
  ["model.py:7:12 no derivative of special.expit is known", "/messages.html"],
  ["losses.py:3:1 make_loss returns a function: differentiate one that calls it", "/messages.html"],
  ["Every rank runs os.makedirs(...). Keep it to rank 0.", "/rules/HZ20.html"],
  ["net.py:9:5 PD09 Paddle drops the `else` of this loop", "/rules/PD09.html"],
  ["--report needs the name of a file.", "/messages.html"],
  ["undo", "/command-line.html"],
  ["elastic", "/command-line.html"],
];
for (const [query, wanted] of queries) {
  const box = page.getByRole("textbox", { name: "Search" });
  await box.fill("");
  await box.press("End");
  await page.locator(".md-search-result__item").first().waitFor({ state: "detached" });
  await box.fill(query);
  await box.press("End");
  await page.locator(".md-search-result__item").first().waitFor();
  const links = await page
    .locator(".md-search-result__item > a")
    .evaluateAll((all) => all.slice(0, 3).map((each) => new URL(each.href).pathname));
  asked.push([query, wanted, links]);
}

await page.goto(`${address}/codes.html`);
await page.getByRole("link", { name: "TF03", exact: true }).last().click();
await page.locator("h1", { hasText: "TF03" }).waitFor();
const headings = await page.locator(".md-content h2").allInnerTexts();

await page.goto(`${address}/contributing.html`);
const steps = await page.locator(".md-content ol").first().locator("> li").count();
await browser.close();
console.log(JSON.stringify({ title, pictures, found, asked, headings, steps, outside, failed }));
