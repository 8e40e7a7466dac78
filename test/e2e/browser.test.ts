/** Mailboxes and sessions in a browser: with and without a script, on a phone and at a desk. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { launchBrowser, openTab, type Person, type Tab } from "./browser/browser.ts"
import { cleanUp, type Service, start } from "./process.ts"

let service: Service
let browser: Browser
let base: string

beforeAll(async () => {
  browser = await launchBrowser()
  // Pages link to absolute URIs, which must lead to this port; those of localhost do.
  service = await start({ env: { BASE_URL: "" } })
  base = `http://localhost:${service.port}`
})

afterAll(async () => {
  await browser?.close()
  cleanUp()
})

interface Opened {
  readonly name: string
  readonly href: string
  readonly shared: string
}

/** Opens a mailbox by the form (A9). */
const openMailbox = async (tab: Tab, name: string): Promise<Opened> => {
  const { page } = tab
  await page.goto(`${base}/mailboxes`)
  await page.getByLabel("Name").fill(name)
  await page.getByLabel("Title").fill(`The post of ${name}`)
  await page.getByRole("button", { name: "Open" }).click()
  expect(await tab.heading()).toBe(`The post of ${name}`)
  const shared = await page.getByRole("link", { name: "~" }).getAttribute("href")
  expect(shared).toContain(`${base}/mailboxes/${name}~`)
  return { name, href: `${base}/mailboxes/${name}`, shared: shared ?? "" }
}

/** Deposits by the form (A2), with the message in the notification. */
const deposit = async (tab: Tab, mailbox: Opened, about: string): Promise<void> => {
  const { page } = tab
  await page.goto(mailbox.href)
  await page.getByLabel("What it is about").fill(about)
  await page.getByLabel("The message itself").fill(`All there is to say of ${about}.`)
  await page.getByRole("button", { name: "Deposit" }).click()
  await page.getByText("The notification is deposited").waitFor()
}

describe("a mailbox", () => {
  it("shows new notifications of other users", async () => {
    const owner = await openTab(browser, { admin: true, at: "desk" })
    const reader = await openTab(browser, { scheme: "dark" })
    const sender = await openTab(browser)
    const mailbox = await openMailbox(owner, "alice")
    await owner.inspect("mailbox-opened")
    await reader.page.goto(mailbox.shared)
    await reader.page.getByText("This page changes by itself.").waitFor()
    await reader.inspect("mailbox-empty")
    await deposit(sender, mailbox, "the swallow <b>& its load</b>")
    await sender.inspect("mailbox-deposited")
    const entry = reader.page.getByRole("link", { name: "the swallow <b>& its load</b>" })
    await entry.waitFor()
    expect(await reader.page.locator(".entries > li").count()).toBe(1)
    await reader.inspect("mailbox-live")
    // A reload shows the same list.
    await reader.page.reload()
    await reader.page.getByText("This page changes by itself.").waitFor()
    expect(await reader.page.locator(".entries > li").count()).toBe(1)
    await reader.inspect("mailbox-reloaded")
    // An EventSource whose position is unknown learns that, and gets what the mailbox has.
    const unknown = `${mailbox.shared}?since=2026-01-01T00:00:00.000000000000999Z`
    const types = await reader.page.evaluate(
      (uri) =>
        new Promise<ReadonlyArray<string>>((resolve) => {
          const received: Array<string> = []
          const source = new EventSource(uri)
          for (const type of ["error", "position", "notification"]) {
            source.addEventListener(type, () => {
              received.push(type)
              if (type === "position") return
              source.close()
              resolve(received)
            })
          }
        }),
      unknown
    )
    expect(types).toEqual(["position", "notification"])
    await owner.page.goto(mailbox.href)
    await owner.page.getByText("This page changes by itself.").waitFor()
    await owner.inspect("mailbox-of-owner")
    await owner.page.goto(`${base}/mailboxes`)
    await owner.page.getByRole("link", { name: mailbox.name, exact: true }).waitFor()
    await owner.inspect("mailboxes")
    await Promise.all([owner.close(), reader.close(), sender.close()])
  })

  it("is opened, filled and read without a script", async () => {
    const owner = await openTab(browser, { admin: true, script: false })
    const sender = await openTab(browser, { script: false })
    const mailbox = await openMailbox(owner, "bob")
    await owner.inspect("mailbox-opened-phone")
    await deposit(sender, mailbox, "the first")
    await deposit(sender, mailbox, "the second")
    await owner.page.goto(mailbox.shared)
    expect(await owner.page.locator(".entries > li").count()).toBe(2)
    await owner.inspect("mailbox-without-script")
    expect(await owner.page.locator(".entries > li a").allInnerTexts())
      .toEqual(["the second", "the first"])
    await owner.page.getByRole("link", { name: "the first" }).click()
    await owner.page.getByText("All there is to say of the first.").waitFor()
    expect(await owner.heading()).toBe("the first")
    await owner.inspect("notification")
    await Promise.all([owner.close(), sender.close()])
  })
})

interface Ending {
  readonly end: string
  readonly name: string
  readonly question: string
  readonly answer: string
  readonly heading: string
  readonly message: string
}

const crossed = { heading: "The other side", message: "Right. Off you go." }
const endings: ReadonlyArray<Ending> = [
  {
    end: "swallow",
    name: "Arthur, King of the Britons",
    question: "What is the air-speed velocity of an unladen swallow?",
    answer: "What do you mean? An African or European swallow?",
    ...crossed
  },
  {
    end: "capital",
    name: "Sir Robin of Camelot",
    question: "What is the capital of Assyria?",
    answer: "Nineveh",
    ...crossed
  },
  {
    end: "colour",
    name: "Sir Lancelot of Camelot",
    question: "What is your favourite colour?",
    answer: "Blue.",
    ...crossed
  },
  {
    end: "gorge",
    name: "Sir Galahad of Camelot",
    question: "What is your favourite colour?",
    answer: "Blue. No, yellow!",
    heading: "",
    message: "Wrong! Into the gorge with you!"
  }
]

const answer = async (tab: Tab, question: string, text: string): Promise<void> => {
  await tab.page.getByLabel(question).fill(text)
  await tab.page.getByRole("button", { name: "Answer" }).click()
}

const walk = async (person: Person, { answer: last, end, ...walker }: Ending): Promise<void> => {
  const tab = (await openTab(browser, person)).expects(406)
  const { page } = tab
  const picture = `bridge-${end}-${person.script === false ? "plain" : "script"}`
  await page.goto(base)
  await page.getByRole("link", { name: "cross the Bridge of Death" }).click()
  await page.getByRole("button", { name: "I am not afraid" }).click()
  await answer(tab, "What is your name?", walker.name)
  await answer(tab, "What is your quest?", "To seek the Holy Grail")
  await tab.inspect(`${picture}-question`)
  const session = page.url()
  await answer(tab, walker.question, last)
  await page.getByText(walker.message).waitFor()
  await tab.inspect(`${picture}-end`)
  await page.goto(session)
  await page.getByText(walker.message).waitFor()
  const over = end === "gorge" ? "The Gorge of Eternal Peril" : walker.heading
  expect(await tab.heading()).toBe(over)
  expect(await page.getByRole("textbox").count()).toBe(0)
  await tab.inspect(`${picture}-session`)
  await tab.close()
}

describe("the bridge", () => {
  for (const ending of endings) {
    it(`leads to its end by the ${ending.end}, with a script`, () =>
      walk({ scheme: "dark" }, ending))
    it(`leads to its end by the ${ending.end}, without a script`, () =>
      walk({ script: false }, ending))
  }

  it("asks the same questions without a session", async () => {
    const tab = await openTab(browser, { script: false })
    await tab.page.goto(`${base}/questions/name_question`)
    await answer(tab, "What is your name?", "Sir Robin of Camelot")
    await answer(tab, "What is your quest?", "To seek the Holy Grail")
    await answer(tab, "What is the capital of Assyria?", "Assur")
    await tab.page.getByText("Right. Off you go.").waitFor()
    await tab.inspect("bridge-stateless")
    await tab.close()
  })
})

describe("every page", () => {
  const pages = [
    ["home", "/", 200],
    ["cross-bridge", "/cross_bridge", 200],
    ["sessions", "/sessions", 200],
    ["problems", "/problems", 200],
    ["problem", "/problems/not-acceptable", 200],
    ["not-found", "/nothing/here", 404],
    ["mailboxes-listed", "/mailboxes", 200],
    ["mailbox-owned", "/mailboxes/carol", 200],
    ["accounts", "/accounts", 200]
  ] as const

  /** `pages.test.ts` checks the pages in the other scheme at each width, too. */
  it.each([["phone", "dark"], ["desk", "light"]] as const)(
    "fits a %s in %s",
    async (at, scheme) => {
      const tab = (await openTab(browser, { admin: true, at, scheme })).expects(404).expects(409)
      await tab.page.goto(`${base}/mailboxes`)
      await tab.page.getByLabel("Name").fill("carol")
      await tab.page.getByRole("button", { name: "Open" }).click()
      await tab.page.getByText(/not shown again|is taken/).waitFor()
      await tab.inspect(`mailbox-opened-or-taken-${at}-${scheme}`)
      for (const [name, path, status] of pages) {
        const answer = await tab.page.goto(`${base}${path}`)
        expect(answer?.status()).toBe(status)
        await tab.inspect(`${name}-${at}-${scheme}`)
      }
      await tab.close()
    }
  )
})
