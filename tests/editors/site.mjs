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

await page.goto(`${address}/codes.html`);
await page.getByRole("link", { name: "TF03", exact: true }).last().click();
await page.locator("h1", { hasText: "TF03" }).waitFor();
const headings = await page.locator(".md-content h2").allInnerTexts();

await page.goto(`${address}/contributing.html`);
const steps = await page.locator(".md-content ol").first().locator("> li").count();
await browser.close();
console.log(JSON.stringify({ title, pictures, found, headings, steps, outside, failed }));
