/** What the pages have in common in a browser: the header on a phone, and what is under way. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { launchBrowser, openTab, signIn, type Tab } from "./browser/browser.ts"
import { cleanUp, start } from "./process.ts"

let browser: Browser
let base: string

beforeAll(async () => {
  const launching = launchBrowser()
  base = `http://localhost:${(await start({ env: { BASE_URL: "" } })).port}`
  browser = await launching
})

afterAll(async () => {
  await browser?.close()
  cleanUp()
})

/** Where the links to the sections are on the screen, which is as wide as `width`. */
const sectionLinks = `[...document.querySelectorAll("header nav a")].map((link) => {
  const { left, right, top } = link.getBoundingClientRect()
  return { name: link.textContent.trim(), left, right, top,
    isCurrent: link.ariaCurrent !== null, isFocused: link === document.activeElement }
})`

interface SectionLink {
  readonly name: string
  readonly left: number
  readonly right: number
  readonly top: number
  readonly isCurrent: boolean
  readonly isFocused: boolean
}

const linksOf = async ({ page }: Tab) =>
  await page.evaluate(sectionLinks) as ReadonlyArray<SectionLink>

const isVisible = ({ left, right }: SectionLink, width: number): boolean =>
  left >= 0 && right <= width

it.each([true, false])("the sections are one row on a phone, script: %s", async (script) => {
  const width = 390
  const tab = await openTab(browser, { script })
  await tab.page.setViewportSize({ width, height: 844 })
  await tab.page.goto(`${base}/docs`)
  const shown = await linksOf(tab)
  expect(new Set(shown.map(({ top }) => top)).size).toBe(1)
  const current = shown.filter(({ isCurrent }) => isCurrent)
  expect(current.map(({ name }) => name)).toEqual(["Docs"])
  expect(current.every((one) => isVisible(one, width))).toBe(true)
  // Tab reaches each of them in its order, and scrolls it into view.
  for (let stop = 0; stop < 3; stop++) await tab.page.keyboard.press("Tab")
  const reached: Array<string> = []
  for (;;) {
    await tab.page.keyboard.press("Tab")
    const focused = (await linksOf(tab)).find(({ isFocused }) => isFocused)
    if (focused === undefined && reached.length > 0) break
    if (focused === undefined) continue
    expect(isVisible(focused, width), focused.name).toBe(true)
    reached.push(focused.name)
  }
  expect(reached).toEqual(shown.map(({ name }) => name))
  await tab.close()
})

/** Holds back the requests of a page to these URIs until `release`. */
const holdBack = async ({ page }: Tab, uris: RegExp, method: string) => {
  let count = 0
  let release = (): void => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  await page.route(uris, async (route) => {
    if (route.request().method() !== method) return route.continue()
    count++
    await held
    // The page may have given up the request.
    await route.continue().catch(() => {})
  })
  return { release, count: () => count }
}

/** Submits the form of the page three times at once; returns what its button shows meanwhile. */
const submitThrice = `(() => {
  const button = document.querySelector("main form[method=post] button[type=submit]")
  let sent = 0
  addEventListener("submit", (event) => { if (!event.defaultPrevented) sent++ })
  const shown = () => ["aria-busy", "aria-disabled"].map((name) => button.getAttribute(name))
  const before = shown()
  for (let time = 0; time < 3; time++) button.click()
  const meanwhile = shown()
  // What a browser does that shows the page again as it was left.
  dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))
  return { sent, before, meanwhile, after: shown() }
})()`

it("a form is sent once, and its button is busy until then", async () => {
  const tab = await openTab(browser)
  await signIn(tab, base)
  await tab.page.goto(`${base}/mailboxes`)
  await tab.page.getByLabel("Name", { exact: true }).fill("once")
  expect(await tab.page.evaluate(submitThrice)).toEqual({
    sent: 1,
    before: [null, null],
    meanwhile: ["true", "true"],
    after: [null, null]
  })
  await tab.page.getByRole("heading", { name: "once" }).waitFor()
  await tab.close()
})

it("a search shows that it is under way, and then what it finds", async () => {
  const tab = await openTab(browser)
  await tab.page.goto(`${base}/docs`)
  const held = await holdBack(tab, /\/docs\?q=/, "GET")
  await tab.page.getByRole("searchbox").fill("registration")
  await tab.page.locator("#found[aria-busy=true]").waitFor({ state: "attached" })
  expect(await tab.page.locator("#found-count").innerText()).toBe("Searching…")
  held.release()
  await tab.page.locator("#found:not([aria-busy])").waitFor()
  expect(await tab.page.locator("#found-count").innerText()).toMatch(/\d/)
  await tab.close()
})
