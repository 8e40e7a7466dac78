/** The inspector in a browser, by keyboard: actors of several kinds in quarantine, and released. */
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { address } from "../../runtime/index.ts"
import { adminToken, type Harness, startService } from "../http/harness.ts"
import { quarantineActor } from "../http/quarantined-actor.ts"
import { launchBrowser, openTab, signIn } from "./browser/browser.ts"
import { Keyboard } from "./browser/keyboard.ts"

const basic = `admin:${adminToken}`

/** How an actor of a kind is made, read and broken. */
interface Sample {
  readonly kind: string
  readonly makes: readonly [method: string, path: string, body: string]
  /** A path that its actor answers; the Location of what was made by default. */
  readonly answers?: string
  /** A message that breaks it if its fields are missing. */
  readonly breaks: string
}

const samples: ReadonlyArray<Sample> = [
  {
    kind: "mailbox",
    makes: ["POST", "/mailboxes", "<mailbox><name>opened</name></mailbox>"],
    breaks: "Describe"
  },
  {
    kind: "outgoing-mailbox",
    makes: [
      "PUT",
      "/outgoing/admin/pauses",
      "<pauses status=\"active\"><pause origin=\"https://receiver.example\"/></pauses>"
    ],
    answers: "/outgoing/admin/pauses",
    breaks: "Describe"
  },
  {
    kind: "session",
    makes: ["POST", "/sessions", "<answer continue=\"true\">yes</answer>"],
    breaks: "Answer"
  }
]

let service: Harness
let browser: Browser

beforeAll(async () => {
  service = await startService(resourceTable)
  browser = await launchBrowser()
})

afterAll(async () => {
  await browser?.close()
  await service?.close()
})

/** The value of a fact on the page. */
const fact = (page: Page, name: string) =>
  page.locator("dt", { hasText: name }).locator("xpath=following-sibling::dd[1]")

it.each(samples)(
  "releases an actor of the kind $kind",
  async ({ answers, breaks, kind, makes }) => {
    const [method, path, body] = makes
    const made = await service.send(method, path, { basic, body })
    expect([made.text, made.status < 300]).toEqual([made.text, true])
    const own = answers ?? made.header("location")
    const read = async () => (await service.send("GET", own, { basic })).status
    expect(await read()).toBe(200)

    const tab = await openTab(browser)
    const { page } = tab
    const keyboard = new Keyboard(page)
    await signIn(tab, service.base, adminToken)
    await page.goto(`${service.base}/cluster/actors/${kind}`)
    const id = await page.getByRole("main").locator("ol a").last().innerText()
    // The header has a link of this name, too.
    await (await keyboard.to("Skip to the content")).enter()
    await (await keyboard.to(id)).enter()
    expect(await tab.heading()).toBe(`${kind}/${id}`)
    expect(await fact(page, "In memory").innerText()).toBe("yes")
    expect(await fact(page, "Last fault").count()).toBe(0)
    expect(await page.getByLabel("State").innerText()).toContain("\"_tag\"")

    await quarantineActor(service, address(kind, id), breaks)
    expect(await read()).toBe(503)
    await page.reload()
    expect(await fact(page, "Last fault").innerText()).toMatch(/^\w*Error at /)
    expect(await fact(page, "In quarantine until").innerText()).toMatch(/\d/)
    await tab.inspect(`inspector-${kind}`)
    await (await keyboard.to("Lift the quarantine")).enter()
    expect(await tab.heading()).toBe("Cluster")
    expect(await read()).toBe(200)
    await page.goto(`${service.base}/cluster/actors/${kind}/${id}`)
    expect(await page.getByRole("button", { name: "Lift the quarantine" }).count()).toBe(0)
    expect(await fact(page, "In memory").innerText()).toBe("yes")
    await tab.close()
  }
)
