/** The cluster page in a browser: three sizes, light and dark, with and without a script. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { launchBrowser, openTab, type Tab } from "./browser/browser.ts"
import { asAdmin, expectStatus, postXml } from "./client.ts"
import { cleanUp, type Service, start } from "./process.ts"

let service: Service
let browser: Browser
let base: string

const sizes = {
  phone: { width: 360, height: 740 },
  tablet: { width: 800, height: 1100 },
  desk: { width: 1280, height: 800 }
}

beforeAll(async () => {
  browser = await launchBrowser()
  service = await start({ env: { BASE_URL: "" } })
  base = `http://localhost:${service.port}`
})

afterAll(async () => {
  await browser?.close()
  cleanUp()
})

const openMailbox = async (name: string): Promise<void> => {
  const document = `<mailbox><name>${name}</name></mailbox>`
  expectStatus(await postXml(base, "/mailboxes", document, asAdmin), 201)
}

/** The number of active actors of a kind on the page. */
const inMemory = (tab: Tab, kind: string): Promise<string> =>
  tab.page.getByRole("region", { name: "Actors" }).getByRole("row", { name: `${kind} ` })
    .getByRole("cell").first().innerText()

const region = "document.querySelector('[aria-label=Actors]')"

it.each(["light", "dark"] as const)("is seen at three sizes (%s)", async (scheme) => {
  const tab = await openTab(browser, { admin: true, script: false, scheme })
  const { page } = tab
  await page.goto(base)
  await page.getByRole("link", { name: "The cluster" }).click()
  expect(await tab.heading()).toBe("Cluster")
  const map = page.getByRole("img", { name: "The shards of sole" })
  for (const [name, size] of Object.entries(sizes)) {
    await page.setViewportSize(size)
    const box = await map.boundingBox()
    expect(box?.width).toBeGreaterThan(200)
    expect(box?.height).toBeGreaterThan(50)
    await tab.inspect(`cluster-${scheme}-${name}`)
  }
  // The page must not cut off long names and incarnations.
  await page.setViewportSize({ width: 710, height: 800 })
  const cut = "(({ clientWidth, scrollWidth }) => scrollWidth - clientWidth)"
  expect(await page.evaluate(`${cut}(document.querySelector("[aria-label=Nodes]"))`)).toBe(0)
  const shards = page.getByRole("region", { name: "Shards" })
  expect(await shards.getByRole("row").allInnerTexts()).toEqual([
    expect.stringMatching(/Node\s+Count\s+Which/),
    expect.stringMatching(/sole\s+256\s+0-255/)
  ])
  await tab.close()
})

const otherFrame = "<li><p><b>other</b></p>" +
  "<div class=\"cells\" role=\"img\" aria-label=\"The shards of other\">" +
  "<i class=\"cell n1\" id=\"shard-7\" title=\"Shard 7\">B</i></div></li>"

/** The page, as if another node had taken a shard. */
const withMove = (page: string): string =>
  page.replace(/<i [^>]* id="shard-7"[^>]*>A<\/i>/, "")
    .replace(
      /<\/li>\s*<\/ul>\s*<p class="quiet"><i /,
      `</li>${otherFrame}</ul><p class="quiet"><i `
    )

it.each(["no-preference", "reduce"] as const)("moves shards (%s)", async (reducedMotion) => {
  const tab = await openTab(browser, { admin: true, at: "desk" })
  const { page } = tab
  await page.emulateMedia({ reducedMotion })
  await page.goto(`${base}/cluster`)
  await page.evaluate(`document.addEventListener("transitionend", ({ propertyName, target }) => {
    document.body.dataset[target.id] = propertyName
  })`)
  await page.route("**/cluster", async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, body: withMove(await response.text()) })
  })
  await page.getByRole("img", { name: "The shards of other" }).waitFor()
  const shard = page.locator("#shard-7")
  if (reducedMotion === "reduce") {
    expect(await page.evaluate("document.getAnimations().length")).toBe(0)
  } else await page.locator("body[data-shard-7=translate]").waitFor()
  expect(await shard.getAttribute("style")).toBe("")
  await page.unroute("**/cluster")
  await tab.close()
})

it("updates live, and preserves the focus and the scroll position", async () => {
  const tab = await openTab(browser, { admin: true })
  const { page } = tab
  await page.goto(`${base}/cluster`)
  await page.getByText("This page changes by itself.").waitFor()
  // The first start has opened one.
  expect(await inMemory(tab, "mailbox")).toBe("1")
  const actors = page.getByRole("region", { name: "Actors" })
  await actors.focus()
  await page.evaluate(`${region}.scrollLeft = 40`)
  await openMailbox("seen")
  await actors.getByRole("row", { name: "mailbox 2 " }).waitFor()
  expect(await page.evaluate(`${region}.scrollLeft`)).toBe(40)
  expect(await page.evaluate(`document.activeElement === ${region}`)).toBe(true)
  await tab.close()
})

it("reports that the service does not respond, and continues when it does", async () => {
  const tab = await openTab(browser, { admin: true })
  const { page } = tab
  await page.goto(`${base}/cluster`)
  await page.route("**/cluster", (route) => route.fulfill({ status: 503, body: "" }))
  await tab.expects(503).page.getByText("The service answers 503; trying again.").waitFor()
  await page.unroute("**/cluster")
  await page.getByText("This page changes by itself.").waitFor()
  await tab.close()
})
