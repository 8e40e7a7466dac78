/** Every kind of page in a browser: its accessibility, by keyboard, and without a script. */
import type { Browser, Locator } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { faultsOf } from "./browser/axe.ts"
import { adminHeaders, launchBrowser, openTab, signIn, type Tab } from "./browser/browser.ts"
import type { SamplePage } from "./browser/sample-page.ts"
import { createSamplePages, pathsWithoutSample } from "./browser/sample-pages.ts"
import { takeTour } from "./browser/tour.ts"
import { asAdmin, expectStatus, postXml, send } from "./client.ts"
import { cleanUp, type Service, start } from "./process.ts"
import { closeReceivers, echoes, receiver } from "./receivers.ts"

/** Each of about thirty pages has three checks, which take long on a busy machine. */
const shownWithinMs = 120_000

let service: Service
let browser: Browser
let base: string
let pages: ReadonlyArray<SamplePage>
/** Tabs of the admin that several tests share, one after the other. */
let live: Tab
let plain: Tab

beforeAll(async () => {
  const launching = launchBrowser()
  service = await start({ env: { BASE_URL: "", OUTBOUND_ALLOW: "127.0.0.0/8" } })
  base = `http://localhost:${service.port}`
  pages = await createSamplePages(base)
  browser = await launching
  live = await openTab(browser)
  plain = await openTab(browser, { script: false })
  for (const tab of [live, plain]) await signIn(tab, base)
})

afterAll(async () => {
  await browser?.close()
  closeReceivers()
  cleanUp()
})

const pathOf = (name: string): string => {
  const found = pages.find((one) => one.name === name)
  if (found === undefined) throw new Error(`there is no page ${name}`)
  return base + found.path
}

/** Opens a page and returns its faults. */
const visit = async (
  tab: Tab,
  { name, path, status }: SamplePage
): Promise<ReadonlyArray<string>> => {
  const answer = await tab.page.goto(base + path)
  const found = answer?.status() === status ? [] : [`answers ${answer?.status()}`]
  return [...found, ...await faultsOf(tab)].map((fault) => `${name}: ${fault}`)
}

it("every page is accessible and fits, narrow and wide, light and dark", async () => {
  const left = pages.filter(({ isStranger }) => !isStranger)
  const faults: Array<string> = []
  const checkAll = async (tab: Tab): Promise<void> => {
    tab.expects(404).expects(400)
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      faults.push(...await visit(tab, next))
    }
    tab.check()
  }
  const stranger = await openTab(browser)
  stranger.expects(401)
  for (const one of pages.filter(({ isStranger }) => isStranger)) {
    faults.push(...await visit(stranger, one))
  }
  await stranger.close()
  const other = await openTab(browser)
  await signIn(other, base)
  await Promise.all([checkAll(live), checkAll(other)])
  await other.close()
  expect(faults).toEqual([])
})

it("every path of /openapi.json that answers with a page has a sample", async () => {
  const document: unknown = JSON.parse((await send(base, "/openapi.json")).text)
  expect(pathsWithoutSample(document, pages)).toEqual([])
  const withoutDocs = pages.filter(({ path }) => !path.startsWith("/docs/modules/"))
  expect(pathsWithoutSample(document, withoutDocs)).toEqual(["/docs/modules/{page}"])
})

it("the page checks detect faults", async () => {
  const tab = await openTab(browser)
  await tab.page.setContent(
    "<p id=a style=\"color:#ccc;background:#fff\">pale</p><input>"
      + "<p id=a style=\"width:2000px\">wide</p>"
      + "<main><details><summary>more</summary><img src=\"data:,\"></details></main>"
  )
  const faults = (await faultsOf(tab)).join("\n")
  const expected = [
    "1280 light label",
    "1280 light image-alt",
    "1280 dark color-contrast",
    "360 light color-contrast"
  ]
  for (const fault of [...expected, "360 wider", "more than one a"]) {
    expect(faults).toContain(fault)
  }
  await tab.close()
})

it("the tour of the home page is taken by keyboard alone, with a script and without", async () => {
  const tour = async (script: boolean, mailbox: string): Promise<void> => {
    const callback = await receiver((received, response) => {
      if (!echoes(received, response)) response.writeHead(204).end()
    })
    const tab = await openTab(browser, { admin: true, script, at: "desk" })
    await takeTour(tab, base, mailbox, { callback: `${callback}/hook`, isLive: script })
    await tab.close()
  }
  await Promise.all([tour(true, "toured"), tour(false, "toured-plainly")])
})

it.each(["mailbox", "mailbox-shared", "cabinet"])("the feeds of a %s are found", async (name) => {
  const tab = plain
  await tab.page.goto(pathOf(name))
  for (const type of ["application/atom+xml", "application/rss+xml"]) {
    const href = await tab.page.locator(`link[rel=alternate][type="${type}"]`).getAttribute("href")
    const accept = { accept: type, ...asAdmin }
    const feed = await send("", String(href), { headers: accept })
    expect([feed.status, feed.headers.get("content-type")]).toEqual([200, `${type}; charset=utf-8`])
  }
  tab.check()
})

describe("a form that is refused", () => {
  it("is shown again with the input, and the fault beside its field", async () => {
    const tab = plain.expects(422)
    const { page } = tab
    await page.goto(`${base}/mailboxes`)
    await page.getByLabel("Name").fill("retyped")
    await page.getByLabel("Title").fill("<b>Typed</b> & \"kept\"")
    await page.getByLabel("Who may deposit").selectOption("accounts")
    await page.getByLabel("Kept after retrieval for").fill("soon")
    await page.getByRole("button", { name: "Open" }).click()
    const wrong = page.getByLabel("Kept after retrieval for")
    expect(await wrong.inputValue()).toBe("soon")
    expect(await wrong.getAttribute("aria-invalid")).toBe("true")
    // A browser moves the focus when it first draws the page, which may be after its load.
    await page.locator("[name=retention]:focus").waitFor()
    const described = await wrong.getAttribute("aria-describedby")
    const fault = page.locator(`#${described?.split(" ")[0]}`)
    expect(await fault.innerText()).toContain("must be a duration of ISO 8601")
    expect(await page.getByLabel("Title").inputValue()).toBe("<b>Typed</b> & \"kept\"")
    expect(await page.getByLabel("Who may deposit").inputValue()).toBe("accounts")
    await wrong.fill("P1D")
    await page.getByRole("button", { name: "Open" }).click()
    expect(await tab.heading()).toBe("<b>Typed</b> & \"kept\"")
    tab.check()
  })

  it("may be a whole document", async () => {
    const tab = plain.expects(400)
    const { page } = tab
    await page.goto(`${base}/queries`)
    await page.getByText("Or write the document").click()
    const typed = "<query on=\"customers\">\n  <any>\n</query>"
    await page.getByLabel("Query", { exact: true }).fill(typed)
    await page.getByRole("button", { name: "Create from the document" }).click()
    const field = page.getByLabel("Query", { exact: true })
    expect(await field.inputValue()).toBe(typed)
    await field.fill(
      "<query on=\"customers\"><title>Two</title><not><where field=\"age\" op=\"lt\" value=\"40\"/>"
        + "</not></query>"
    )
    await page.getByRole("button", { name: "Create from the document" }).click()
    expect(await tab.heading()).toBe("Two")
    await page.getByRole("link", { name: "The result" }).click()
    expect(await page.getByRole("row").count()).toBe(3)
    tab.check()
  })
})

it("a notification is removed by its button, with a script and without", async () => {
  for (const [about, tab] of [["live", live], ["plain", plain]] as const) {
    const { page } = tab
    await page.goto(`${base}/mailboxes/bob`)
    await page.getByLabel("What it is about").fill(`crumbs ${about}`)
    await page.getByLabel("The message itself").fill("On the carpet.")
    await page.getByRole("button", { name: "Deposit" }).click()
    await page.getByText("The notification is deposited").waitFor()
    await page.goto(`${base}/mailboxes/bob?read=`)
    await page.getByRole("button", { name: `Remove crumbs ${about}` }).click()
    if (about === "plain") {
      await page.getByRole("main").getByRole("button", { name: "Remove" }).click()
    }
    // With a script, it may be undone before.
    await page.getByText("There is nothing here.").waitFor({ timeout: shownWithinMs })
    expect(await page.locator(".entries > li").count()).toBe(0)
    tab.check()
  }
})

it("open lists update live, and preserve the focus", async () => {
  const cabinet = await openTab(browser, { admin: true })
  const pushes = await openTab(browser, { admin: true })
  await live.page.goto(pathOf("outgoing"))
  await cabinet.page.goto(pathOf("cabinet"))
  await pushes.page.goto(pathOf("registrations"))
  await cabinet.page.getByRole("link", { name: "The keys", exact: true }).focus()
  const about = "<item><description>the news</description><url>http://peer.test/</url></item>"
  const to = `<to>${base}/mailboxes/bob</to>`
  const sent = `<notification>${to}${about}</notification>`
  const entries = live.page.locator(".entries > li")
  const before = await entries.count()
  expectStatus(await postXml(base, "/outgoing/admin", sent, asAdmin), 202)
  const callback = "<registration><callback>http://127.0.0.1:9/new</callback></registration>"
  expectStatus(await postXml(base, "/mailboxes/alice/registrations", callback, asAdmin), 201)
  await cabinet.page.getByRole("link", { name: "the news" }).waitFor()
  expect(await cabinet.page.evaluate("document.activeElement.textContent")).toBe("The keys")
  await entries.nth(before).waitFor()
  await pushes.page.getByRole("link", { name: "127.0.0.1:9/new" }).waitFor()
  // By its id: a control named "contains" hides that method of its form from other locators.
  const liveText = cabinet.page.locator("#live")
  expect(await liveText.innerText()).toBe("This page changes by itself.")
  await send(base, new URL(pathOf("cabinet")).pathname, { method: "DELETE", headers: asAdmin })
  cabinet.expects(410)
  await expect.poll(() => liveText.innerText(), { timeout: shownWithinMs })
    .toBe("This is no longer here.")
  live.check()
  await Promise.all([cabinet.close(), pushes.close()])
})

it("times are the reader's, and secrets are copied by a button", async () => {
  const context = await browser.newContext({
    locale: "de-DE",
    timezoneId: "Asia/Tokyo",
    extraHTTPHeaders: adminHeaders,
    permissions: ["clipboard-read", "clipboard-write"]
  })
  context.setDefaultTimeout(shownWithinMs)
  const page = await context.newPage()
  await page.goto(`${pathOf("mailbox")}?read=`)
  const exactOf = async (time: Locator): Promise<string> => {
    const at = new Date(await time.getAttribute("datetime") ?? "")
    const format = { dateStyle: "medium", timeStyle: "medium", timeZone: "Asia/Tokyo" } as const
    return new Intl.DateTimeFormat("de-DE", format).format(at)
  }
  const time = page.locator("time[title$=UTC]").first()
  await time.waitFor()
  expect(await time.innerText()).toMatch(/^(?:jetzt|vor \d+ (?:Sekunde|Minute|Stunde)n?)$/)
  expect(await time.getAttribute("title")).toContain(`${await exactOf(time)} · `)
  await page.getByRole("button", { name: "Copy the password" }).click()
  await page.getByText("Copied.").waitFor()
  expect(await page.evaluate("navigator.clipboard.readText()")).toBe("mellon")
  await page.goto(`${base}/audit`)
  await time.waitFor()
  expect(await time.innerText()).toBe(await exactOf(time))
  await context.close()
})

it("the reader chooses light or dark, for all pages, until the next choice", async () => {
  const tab = await openTab(browser, { scheme: "dark", at: "desk" })
  const { page } = tab
  const scheme = () => page.evaluate("getComputedStyle(document.documentElement).colorScheme")
  await page.goto(base)
  expect(await scheme()).toBe("light dark")
  await page.getByRole("button", { name: "Light colors" }).click()
  expect(await scheme()).toBe("light")
  await page.goto(`${base}/quotes`)
  expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("light")
  await page.getByRole("button", { name: "Dark colors" }).click()
  expect(await scheme()).toBe("dark")
  await tab.close()
})

it("the words of the header have icons where there is room, and none on a phone", async () => {
  const tab = await openTab(browser, { at: "desk" })
  const { page } = tab
  await page.goto(`${base}/problems`)
  const shown = async (width: number): Promise<ReadonlyArray<boolean>> => {
    await page.setViewportSize({ width, height: 800 })
    const icons = await page.locator("header .icon").all()
    return Promise.all(icons.map((icon) => icon.isVisible()))
  }
  const wide = await shown(1280)
  expect([wide.length > 6, wide.includes(false)]).toEqual([true, false])
  const sections = page.getByRole("navigation", { name: "Sections" })
  expect(await shown(390)).not.toContain(true)
  expect(await sections.getByRole("link", { name: "Docs", exact: true }).isVisible()).toBe(true)
  await tab.close()
})
