/**
 * Measures of every kind of page: its accessibility at three widths in both schemes, the bytes of
 * its scripts, and when it is first seen. Screenshots are kept in `test-results/measures`. Of the
 * documentation axe checks every page.
 */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { gzipSync } from "node:zlib"
import { allFaultsOf, everyLookFaultsOf, looks } from "./browser/axe.ts"
import { launchBrowser, openTab, signIn, type Tab } from "./browser/browser.ts"
import { documentationPages } from "./browser/sample-documentation.ts"
import type { SamplePage } from "./browser/sample-page.ts"
import { createSamplePages } from "./browser/sample-pages.ts"
import { asAdmin, send } from "./client.ts"
import { cleanUp, type Service, start } from "./process.ts"
import { closeReceivers } from "./receivers.ts"

/** Of all scripts of a page together, compressed. */
const scriptBytesMax = 60_000

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

/** Pages that are checked at once: axe waits for the browser. */
const tabsMax = 2

/** Some 60 pages in six looks; this only ends what hangs. */
const documentationHangsMs = 3_600_000

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

  it.each(looks)("axe finds nothing at $viewport.width px, $colorScheme", async (look) => {
    const { colorScheme, viewport } = look
    const faults: Array<string> = []
    for (const { page } of [signedIn, stranger]) {
      await page.setViewportSize(viewport)
      await page.emulateMedia({ colorScheme })
    }
    for (const one of pages) {
      const { name, path } = one
      const tab = tabOf(one)
      await tab.page.goto(base + path)
      faults.push(...(await allFaultsOf(tab, look)).map((fault) => `${name}: ${fault}`))
      await tab.save(`measures/${viewport.width}-${colorScheme}/${name}`)
    }
    expect(faults).toEqual([])
  })

  it("axe finds nothing on any page of the documentation, in every look", async () => {
    const documentation = await documentationPages(base)
    expect(documentation.length).toBeGreaterThan(50)
    const left = [...documentation]
    const faults: Array<string> = []
    const checkAll = async (): Promise<void> => {
      const tab = await openTab(browser)
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        const { path, status } = next
        const answer = await tab.page.goto(base + path)
        const found = answer?.status() === status ? [] : [`answers ${answer?.status()}`]
        faults.push(...[...found, ...await everyLookFaultsOf(tab)].map((one) => `${path}: ${one}`))
      }
      await tab.close()
    }
    await Promise.all(Array.from({ length: tabsMax }, checkAll))
    expect(faults).toEqual([])
  }, documentationHangsMs)

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
