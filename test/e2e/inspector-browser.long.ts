/**
 * The inspector in a browser: the log, the timer and the queue of actors; by keyboard, actors of
 * several kinds in quarantine, and released. Its pages are accessible at three widths in both
 * color schemes: those of a quarantine need an actor that breaks, which no service of another
 * process has.
 */
import { Effect } from "effect"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { OutgoingMailboxMessage } from "../../actors/outgoing-mailbox/index.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { address, keyOf } from "../../runtime/index.ts"
import { adminToken, type Harness, startService } from "../http/harness.ts"
import { outgoing, recipients, startReceiver } from "../http/outgoing-harness.ts"
import { quarantineActor, quarantineMailbox } from "../http/quarantined-actor.ts"
import { eventually } from "../http/receiver.ts"
import { everyLookFaultsOf } from "./browser/axe.ts"
import { launchBrowser, openTab, signIn, type Tab } from "./browser/browser.ts"
import { Keyboard } from "./browser/keyboard.ts"
import { flowLooks, lookName, Walk } from "./flows/walk.ts"

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

const busy = address("outgoing-mailbox", "busy")

/** Each is a change, and so its reply waits for a commit. */
const pausing = (isPaused: boolean): OutgoingMailboxMessage => ({
  _tag: "Replace",
  caller: { account: "admin", admin: true },
  isPaused,
  origins: []
})

const waiting: Array<Promise<unknown>> = []

const run = Effect.runPromise

/** Sends the busy actor messages just before it is inspected. */
const withMessages = (one: Service): Service => {
  const { system } = one
  const inspect: Service["system"]["inspect"] = (of) =>
    Effect.suspend(() => {
      if (keyOf(of) === keyOf(busy)) {
        for (const isPaused of [false, true, false]) {
          waiting.push(run(system.ask(busy, pausing(isPaused))))
        }
      }
      return system.inspect(of)
    })
  return { ...one, system: { ...system, inspect } }
}

let service: Harness
let browser: Browser

beforeAll(async () => {
  service = await startService((shared) => resourceTable(withMessages(shared)))
  browser = await launchBrowser()
})

afterAll(async () => {
  await browser?.close()
  await service?.close()
})

/** Opens each of these pages; none has a fault. */
const expectAccessible = async (
  tab: Tab,
  name: string,
  paths: ReadonlyArray<string>
): Promise<void> => {
  for (const [at, path] of paths.entries()) {
    const answer = await tab.page.goto(service.base + path)
    const inspect = (look: string) => tab.inspect(`inspector-${name}-${at}-${look}`)
    const faults = await everyLookFaultsOf(tab, inspect)
    expect([path, answer?.status(), faults]).toEqual([path, 200, []])
  }
}

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
    await keyboard.skip()
    await (await keyboard.to("Id of an actor")).types(id)
    await (await keyboard.to("Open")).enter()
    expect(await tab.heading()).toBe(`${kind}/${id}`)
    await page.goBack()
    await keyboard.skip()
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
    const inspected = `/cluster/actors/${kind}/${id}`
    const lists = ["/cluster", `/cluster/actors/${kind}`, `/cluster/quarantine/${kind}/${id}`]
    await expectAccessible(tab, `${kind}-broken`, [...lists, inspected])
    await (await keyboard.to("Lift the quarantine")).enter()
    expect(await tab.heading()).toBe("Cluster")
    expect(await read()).toBe(200)
    await expectAccessible(tab, `${kind}-released`, ["/cluster", inspected])
    expect(await page.getByRole("button", { name: "Lift the quarantine" }).count()).toBe(0)
    expect(await fact(page, "In memory").innerText()).toBe("yes")
    expect(await fact(page, "Last fault").innerText()).toMatch(/^\w*Error at /)
    await tab.close()
  }
)

/** A quarantine is lifted from the list of the cluster, and from the page of the actor. */
it.each(flowLooks.map((look) => [lookName(look), look] as const))(
  "lifts quarantines by keyboard alone (%s)",
  async (name, look) => {
    const actor = { account: "admin", token: adminToken, authorization: "" }
    const walk = await Walk.open(browser, { base: service.base, look, flow: "quarantine", actor })
    const id = `broken-${name}`
    const body = `<mailbox><name>${id}</name></mailbox>`
    expect((await service.send("POST", "/mailboxes", { basic, body })).status).toBe(201)
    const statusNow = async () => (await service.send("GET", `/mailboxes/${id}`, { basic })).status
    const breakIt = async (): Promise<void> => {
      await quarantineMailbox(service, id)
      expect(await statusNow()).toBe(503)
    }
    await walk.signIn()
    await breakIt()
    await walk.begin("/cluster")
    await walk.step("cluster", "Cluster")
    await walk.enter(`Lift the quarantine of mailbox/${id}`)
    await walk.step("lifted", "Cluster")
    expect(await statusNow()).toBe(200)
    await breakIt()
    await walk.begin("/cluster")
    await walk.enter(`mailbox/${id}`)
    await walk.step("actor", `mailbox/${id}`)
    await walk.enter("Lift the quarantine")
    expect(await walk.tab.heading()).toBe("Cluster")
    expect(await statusNow()).toBe(200)
    expect(walk.faults).toEqual([])
    await walk.tab.close()
  }
)

it("shows the timer of a notification, and the items of its log", async () => {
  const receiver = await startReceiver()
  const body = outgoing([`${receiver.base}/503/inbox`], "not for admins")
  const sent = await service.send("POST", "/outgoing/admin", { basic, body })
  expect(sent.status).toBe(202)
  const href = sent.header("location")
  const next = await eventually("the first attempt has failed", async () => {
    const [recipient] = recipients(await service.send("GET", href, { basic }))
    return recipient?.attributes["status"] === "retry" ? recipient.attributes["next"] : undefined
  })

  const tab = await openTab(browser)
  const { page } = tab
  await signIn(tab, service.base, adminToken)
  await page.goto(`${service.base}/cluster/actors/notification/${href.split("/").at(-1)}`)
  expect(await fact(page, "Timer").locator("time").getAttribute("datetime")).toBe(next)
  expect(await fact(page, "Last log item").innerText()).toBe("2")
  expect(await fact(page, "Messages without a reply").innerText()).toBe("0")
  // Of the log: its number, the index of its recipient, and its length.
  expect(await page.getByLabel("State").innerText()).toMatch(/"attemptLog": \[\s+\[2, 0, \d+\]/)
  const items = page.getByRole("main").locator("ol.entries > li")
  expect(await items.count()).toBe(2)
  expect(await items.first().innerText()).toMatch(/^Item 1\s+not shown, \d+ characters$/)
  expect(await items.last().innerText()).toMatch(/^Item 2\s+\{"recipient":0,[^]*"code":503,/)
  expect(await page.getByRole("main").innerText()).not.toContain("not for admins")
  await tab.inspect("inspector-notification")
  await tab.close()
  await receiver.close()
})

it("shows how many messages of an actor wait for their replies", async () => {
  await run(service.service.system.ask(busy, pausing(true)))
  const tab = await openTab(browser)
  const { page } = tab
  await signIn(tab, service.base, adminToken)
  await page.goto(`${service.base}/cluster/actors/${busy.kind}/${busy.id}`)
  expect(waiting).toHaveLength(3)
  expect(await fact(page, "Messages without a reply").innerText())
    .toMatch(/^3 \(3 Replace\), the oldest since \S/)
  await Promise.all(waiting)
  await tab.inspect("inspector-busy")
  await tab.close()
})
