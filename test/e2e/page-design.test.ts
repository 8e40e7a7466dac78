/** What the pages have in common in a browser: the header on a phone. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { launchBrowser, openTab, type Tab } from "./browser/browser.ts"
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
