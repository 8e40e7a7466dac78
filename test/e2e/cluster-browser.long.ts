/** The cluster page in a browser: three sizes, light and dark, with and without a script. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
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

describe("the charts of /cluster/history", () => {
  const openHistory = async (script: boolean): Promise<Tab> => {
    const tab = await openTab(browser, { admin: true, script, at: "desk" })
    await expect.poll(async () => {
      await tab.page.goto(`${base}/cluster/history`)
      return tab.page.locator("figure").count()
    }, { interval: 1_000 }).toBeGreaterThan(0)
    return tab
  }
  const wanted = [
    "Requests",
    "Time of a request",
    "Commits",
    "Time of a commit",
    "Attempts of deliveries",
    "Waiting deliveries",
    "Messages in queues",
    "Timers that are due",
    "Event loop",
    "Memory"
  ]

  it("have axes, and their values in a table, without a script", async () => {
    const tab = await openHistory(false)
    const { page } = tab
    expect(await page.locator("figure b").allInnerTexts()).toEqual(wanted)
    expect(await page.locator("figure").first().innerText())
      .toMatch(/10 min ago\s+5 min ago\s+now/)
    expect(await page.locator("figure .axis").last().innerText()).toMatch(/MiB\s+\d+ MiB\s+0 MiB/)
    await page.getByText("Values as a table").click()
    const table = page.getByRole("region", { name: "Values of the charts" })
    const head = await table.getByRole("columnheader").allInnerTexts()
    for (const title of wanted) expect(head.join(" ")).toContain(title)
    expect(await table.getByRole("row").last().innerText()).toMatch(/\d MiB$/)
    await tab.close()
  })

  it("are drawn by uPlot, within the policy, and show the values under the pointer", async () => {
    const tab = await openHistory(true)
    const { page } = tab
    const figures = page.locator(".drawn figure")
    expect(await figures.count()).toBe(wanted.length)
    expect(await page.locator(".drawn canvas").count()).toBe(wanted.length)
    expect(await page.locator("figure svg").first().isVisible()).toBe(false)
    const first = figures.first().locator("figcaption > span").first()
    expect(await first.innerText()).toMatch(/^\S+\/s$/)
    const box = await page.locator(".drawn .u-over").first().boundingBox()
    await page.mouse.move((box?.x ?? 0) + (box?.width ?? 0) - 1, (box?.y ?? 0) + 20)
    // The pointer is over one chart, and all show the values of its time.
    for (const at of [0, wanted.length - 1]) {
      await expect.poll(() => figures.nth(at).locator("figcaption").innerText())
        .toMatch(/\d+:\d\d:\d\d/)
    }
    await page.mouse.move(0, 0)
    await expect.poll(() => first.innerText()).toMatch(/^\S+\/s$/)
    await page.getByRole("group", { name: /^Charts/ }).focus()
    await page.keyboard.press("End")
    await expect.poll(() => first.innerText()).toMatch(/\d+:\d\d:\d\d.*\/s$/)
    await page.keyboard.press("Escape")
    await expect.poll(() => first.innerText()).toMatch(/^\S+\/s$/)
    await tab.inspect("history-drawn")
    await tab.close()
  })

  it("change with the page, keep the focus, and fit a phone", async () => {
    const tab = await openHistory(true)
    const { page } = tab
    const about = page.locator("#history-about")
    const before = await about.innerText()
    await page.getByText("Values as a table").click()
    await page.getByRole("group", { name: /^Charts/ }).focus()
    await page.evaluate("document.querySelector('.drawn').dataset.mark = 'same'")
    await expect.poll(() => about.innerText()).not.toBe(before)
    expect(await page.evaluate("document.activeElement.dataset.mark")).toBe("same")
    expect(await page.locator("#chart-values").getAttribute("open")).toBe("")
    const color = "document.querySelector('.drawn canvas').toDataURL()"
    const light = await page.evaluate(color)
    await page.emulateMedia({ colorScheme: "dark" })
    await expect.poll(() => page.evaluate(color)).not.toBe(light)
    await page.setViewportSize({ width: 360, height: 740 })
    await expect.poll(async () =>
      (await page.locator(".drawn canvas").first().boundingBox())?.width
    )
      .toBeLessThan(360)
    await tab.inspect("history-drawn-phone")
    await tab.close()
  })

  it("are the only reason to load their script", async () => {
    const tab = await openTab(browser, { admin: true })
    for (const path of ["/cluster", "/admin", "/mailboxes"]) {
      await tab.page.goto(base + path)
      expect(await tab.page.locator("script[src='/charts.js']").count()).toBe(0)
    }
    await tab.close()
  })
})
