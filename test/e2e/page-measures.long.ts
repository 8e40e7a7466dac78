/**
 * Measures of every kind of page: its accessibility at three widths in both schemes, the bytes of
 * its scripts, and when it is first seen. Screenshots are kept in `test-results/measures`.
 */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { gzipSync } from "node:zlib"
import { allFaultsOf } from "./browser/axe.ts"
import { launchBrowser, openTab, signIn, type Tab } from "./browser/browser.ts"
import type { SamplePage } from "./browser/sample-page.ts"
import { createSamplePages } from "./browser/sample-pages.ts"
import { asAdmin, send } from "./client.ts"
import { cleanUp, type Service, start } from "./process.ts"
import { closeReceivers } from "./receivers.ts"

/** Of all scripts of a page together, compressed. */
const scriptBytesMax = 60_000

const height = 900

/** The labels of the buttons that are filled with the color of a page's main action. */
const filledButtons = `(() => {
  const probe = document.body.appendChild(document.createElement("p"))
  probe.style.color = "var(--accent)"
  const accent = getComputedStyle(probe).color
  probe.remove()
  return [...document.querySelectorAll("button")]
    .filter((button) => getComputedStyle(button).backgroundColor === accent)
    .map((button) => button.textContent.trim())
})()`

const looks = [390, 768, 1_280].flatMap((width) =>
  (["light", "dark"] as const).map((colorScheme) => ({ width, colorScheme }))
)

let service: Service
let base: string
let pages: ReadonlyArray<SamplePage>

beforeAll(async () => {
  service = await start({ env: { BASE_URL: "", OUTBOUND_ALLOW: "127.0.0.0/8" } })
  base = `http://localhost:${service.port}`
  pages = await createSamplePages(base)
})

afterAll(() => {
  closeReceivers()
  cleanUp()
})

it("a page has at most 60 kB of compressed scripts", async () => {
  const sizes = new Map<string, number>()
  const sizeOf = async (path: string): Promise<number> => {
    const known = sizes.get(path)
    if (known !== undefined) return known
    const size = gzipSync((await send(base, path)).text).length
    sizes.set(path, size)
    return size
  }
  const found: Array<readonly [name: string, bytes: number]> = []
  for (const { isStranger, name, path } of pages) {
    const credentials = isStranger ? {} : asAdmin
    const { text } = await send(base, path, { headers: { ...credentials, accept: "text/html" } })
    // The policy of pages allows no script in a page: each is a file of this origin.
    const scripts = [...text.matchAll(/<script [^>]*src="([^"]+)"/g)].map(([, one = ""]) => one)
    expect(scripts, name).toContain("/page.js")
    const bytes = await Promise.all(scripts.map(sizeOf))
    found.push([name, bytes.reduce((sum, one) => sum + one, 0)])
  }
  const largest = found.toSorted(([, one], [, other]) => other - one)
  console.log(`scripts of a page, compressed: ${largest[0]?.join(" ")} B at most`)
  expect(largest.filter(([, bytes]) => bytes > scriptBytesMax)).toEqual([])
})

describe("in a browser", () => {
  let browser: Browser
  let signedIn: Tab
  let stranger: Tab

  beforeAll(async () => {
    browser = await launchBrowser()
    signedIn = (await openTab(browser)).expects(404).expects(400)
    stranger = (await openTab(browser)).expects(401)
    await signIn(signedIn, base)
  })

  const tabOf = ({ isStranger }: SamplePage): Tab => isStranger ? stranger : signedIn

  afterAll(async () => {
    await browser?.close()
  })

  it.each(looks)("axe finds nothing at $width px, $colorScheme", async ({ colorScheme, width }) => {
    const look = { viewport: { width, height }, colorScheme }
    const faults: Array<string> = []
    for (const { page } of [signedIn, stranger]) {
      await page.setViewportSize(look.viewport)
      await page.emulateMedia({ colorScheme })
    }
    for (const one of pages) {
      const { name, path } = one
      const tab = tabOf(one)
      await tab.page.goto(base + path)
      faults.push(...(await allFaultsOf(tab, look)).map((fault) => `${name}: ${fault}`))
      await tab.save(`measures/${width}-${colorScheme}/${name}`)
    }
    expect(faults).toEqual([])
  })

  it("has one primary action on a page, and reports when each page is first seen", async () => {
    const times: Array<readonly [name: string, ms: number]> = []
    const crowded: Array<string> = []
    for (const one of pages) {
      const { name, path } = one
      const tab = tabOf(one)
      await tab.page.goto(base + path)
      const labels = await tab.page.evaluate(filledButtons) as ReadonlyArray<string>
      if (labels.length > 1) crowded.push(`${name}: ${labels.join(", ")}`)
      times.push([name, Math.round(await tab.firstContentfulPaintMs())])
    }
    expect(crowded).toEqual([])
    const slowest = times.toSorted(([, one], [, other]) => other - one)
    const median = slowest[Math.floor(slowest.length / 2)]?.[1]
    const listed = slowest.slice(0, 10).map(([name, ms]) => `${name} ${ms}`)
    console.log(`first contentful paint: median ${median} ms; ${listed.join(", ")}`)
    expect(times.filter(([, ms]) => !Number.isFinite(ms))).toEqual([])
  })
})
