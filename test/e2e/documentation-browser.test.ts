/** The documentation in a browser: its search while one types, and without a script. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { faultsOf } from "./browser/axe.ts"
import { launchBrowser, openTab } from "./browser/browser.ts"
import { cleanUp, type Service, start } from "./process.ts"

let service: Service
let browser: Browser
let base: string

beforeAll(async () => {
  browser = await launchBrowser()
  service = await start({ env: { BASE_URL: "" } })
  base = `http://localhost:${service.port}`
})

afterAll(async () => {
  await browser?.close()
  cleanUp()
})

const field = "form[data-search] input"

it("shows what a search finds while its reader types, and leads there", async () => {
  const tab = await openTab(browser, { at: "desk" })
  const { page } = tab
  await page.goto(`${base}/docs/quick-start`)
  expect(await page.locator("#found a").count()).toBe(0)
  await page.locator(field).pressSequentially("fencing token")
  await page.locator("#found a").first().waitFor()
  expect(await page.locator("#found mark").first().textContent()).toMatch(/^fencing$/i)
  expect(await page.locator("h1").textContent()).toBe("Quick start")
  expect(await faultsOf(tab)).toEqual([])
  await page.locator(field).fill("")
  await page.locator("#found a").first().waitFor({ state: "detached" })
  await page.locator(field).fill("no such words xyzzy")
  await page.getByText("No page has all of these words.").waitFor()
  await page.locator(field).fill("a shard")
  const first = page.locator("#found a").first()
  const href = await first.getAttribute("href")
  await first.click()
  await page.waitForURL(`${base}${href}`)
})

it("finds the same without a script", async () => {
  const { page } = await openTab(browser, { script: false })
  await page.goto(`${base}/docs`)
  await page.locator(field).fill("fencing token")
  await page.keyboard.press("Enter")
  await page.waitForURL(/\/docs\?q=fencing\+token$/)
  expect(await page.locator("h1").textContent()).toBe("Search")
  expect(await page.locator("#found a").count()).toBeGreaterThan(0)
  await page.locator("#found a").first().click()
  expect(new URL(page.url()).pathname).toMatch(/^\/docs\//)
})

it("leads from page to page by the list of all pages, and by the neighbors", async () => {
  const { page } = await openTab(browser, { script: false, at: "desk" })
  await page.goto(`${base}/docs`)
  await page.locator(".contents a", { hasText: /^Concepts$/ }).click()
  expect(await page.locator("h1").textContent()).toBe("Concepts")
  expect(await page.locator(".contents a[aria-current=page]").textContent()).toBe("Concepts")
  expect(await page.locator("svg.picture").count()).toBe(4)
  await page.locator("a[rel=prev]").click()
  expect(await page.locator("h1").textContent()).toBe("Quick start")
  await page.locator("a[rel=next]").click()
  expect(await page.locator("h1").textContent()).toBe("Concepts")
})
