/** Sending, registering and cabinets in a browser: with and without a script. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { faultsOf } from "./browser/axe.ts"
import { launchBrowser, openTab, type Person, type Tab } from "./browser/browser.ts"
import { cleanUp, eventually, type Service, start } from "./process.ts"
import { closeReceivers, echoes, receiver, startReceiver } from "./receivers.ts"

let service: Service
let browser: Browser
let base: string

const updatedWithinMs = 120_000
const env = {
  BASE_URL: "",
  OUTBOUND_ALLOW: "127.0.0.0/8",
  RETRY_SCHEDULE: `0s,${Array.from({ length: 30 }, () => "300ms").join(",")}`
}

beforeAll(async () => {
  browser = await launchBrowser()
  service = await start({ env })
  base = `http://localhost:${service.port}`
})

afterAll(async () => {
  await browser?.close()
  closeReceivers()
  cleanUp()
})

/** Saves screenshots for a desk and a phone of the page that the user continues with. */
const pictures = async (tab: Tab, name: string): Promise<void> => {
  await tab.page.setViewportSize({ width: 1280, height: 800 })
  await tab.inspect(`${name}-desk`)
  await tab.page.setViewportSize({ width: 360, height: 740 })
  await tab.inspect(`${name}-phone`)
}

const appears = (tab: Tab, { script = true }: Person, text: string): Promise<void> =>
  tab.appears(text, script)

const openMailbox = async (tab: Tab, name: string): Promise<string> => {
  await tab.page.goto(`${base}/mailboxes`)
  await tab.page.getByLabel("Name").fill(name)
  await tab.page.getByRole("button", { name: "Open" }).click()
  await tab.page.getByText("not shown again").waitFor()
  return `${base}/mailboxes/${name}`
}

const deposit = async (tab: Tab, mailbox: string, about: string): Promise<void> => {
  await tab.page.goto(mailbox)
  await tab.page.getByLabel("What it is about").fill(about)
  await tab.page.getByLabel("The message itself").fill(`All of ${about}.`)
  await tab.page.getByRole("button", { name: "Deposit" }).click()
  await tab.page.getByText("The notification is deposited").waitFor()
}

const ways: ReadonlyArray<readonly [name: string, person: Person]> = [
  ["script", { admin: true }],
  ["plain", { admin: true, script: false }]
]

describe.each(ways)("sending (%s)", (way, person) => {
  it("shows the status of each recipient, retries, and removes", async () => {
    const tab = await openTab(browser, person)
    const { page } = tab
    const mailbox = await openMailbox(tab, `alice-${way}`)
    const patient = await startReceiver()
    const gone = await startReceiver()
    await page.goto(base)
    await page.getByRole("link", { name: "your outgoing mailbox" }).click()
    expect(await tab.heading()).toBe("Outgoing mailbox of admin")
    await pictures(tab, `outgoing-${way}-before`)
    await page.getByLabel("To", { exact: true }).fill(
      `${mailbox}\n${patient.uri}\n${gone.uri}/${"a-long-path-of-a-mailbox/".repeat(4)}`
    )
    await page.getByLabel("What it is about").fill("the keys <b>")
    await page.getByLabel("The message itself").fill("They are under the mat.")
    await page.getByLabel("Name this outgoing mailbox").check()
    await page.getByRole("button", { name: "Send" }).click()
    const rows = page.locator("#recipients tr")
    await page.getByRole("heading", { name: "the keys <b>" }).waitFor()
    expect(await rows.count()).toBe(3)
    await appears(tab, person, "✓ success")
    await appears(tab, person, "○ waiting")
    await pictures(tab, `sent-${way}-waiting`)
    patient.at.answers(503)
    gone.at.answers(410)
    await appears(tab, person, "↻ retry")
    await appears(tab, person, "✗ failed")
    await pictures(tab, `sent-${way}-retry`)
    patient.at.answers(202)
    gone.at.answers(202)
    await appears(tab, person, "answered 410")
    await eventually(updatedWithinMs, "two have succeeded", async () => {
      if (person.script === false) await page.reload()
      return await rows.getByText("✓ success").count() === 2 ? true : undefined
    }, 100)
    await page.getByRole("button", { name: "Try again" }).click()
    await appears(tab, person, "✓ sent")
    expect(await rows.getByText("✓ success").count()).toBe(3)
    await pictures(tab, `sent-${way}-sent`)
    const address = page.url()
    await page.goto(`${base}/outgoing/admin`)
    await pictures(tab, `outgoing-${way}-after`)
    await page.getByRole("link", { name: "✓ sent" }).click()
    await page.locator(".entries > li").first().waitFor()
    await page.goto(mailbox)
    await page.getByText("the keys <b>").waitFor()
    await page.goto(address)
    // The open page may notice the removal before the browser leaves it.
    await tab.expects(410).page.getByRole("button", { name: "Remove" }).click()
    await page.waitForURL(`${base}/outgoing/admin`)
    expect((await page.goto(address))?.status()).toBe(410)
    await tab.close()
  })

  it("replays a span", async () => {
    const tab = await openTab(browser, person)
    const { page } = tab
    const gone = await startReceiver()
    gone.at.answers(410)
    await page.goto(`${base}/outgoing/admin`)
    await page.getByLabel("To", { exact: true }).fill(gone.uri)
    await page.getByLabel("What it is about").fill("again")
    await page.getByLabel("Address of the message").fill(`${base}/problems`)
    await page.getByRole("button", { name: "Send" }).click()
    await appears(tab, person, "✗ failed")
    const address = page.url()
    gone.at.answers(202)
    await page.goto(`${base}/outgoing/admin?status=failed`)
    await page.getByText("Try all failed recipients again").click()
    await page.getByRole("button", { name: "Try again" }).click()
    await page.getByRole("heading", { name: "Tried again" }).waitFor()
    await pictures(tab, `replayed-${way}`)
    await page.goto(address)
    await appears(tab, person, "✓ sent")
    await tab.close()
  })
})

describe("the recipients", () => {
  const chips = ({ page }: Tab) => page.getByRole("listitem").filter({ has: page.locator("b") })

  it("are chips, which are corrected and removed, and are sent like lines", async () => {
    const tab = await openTab(browser, { admin: true, at: "desk" })
    const { page } = tab
    const at = await openMailbox(tab, "chips")
    await page.goto(`${base}/outgoing/admin`)
    const to = page.getByLabel("To", { exact: true })
    // A comma within an address that comes as a whole does not end it.
    await to.fill(`${at}?one,two,`)
    await to.pressSequentially("ftp://far.test/x")
    await to.press("Enter")
    expect(await to.inputValue()).toBe("")
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
    const pasted = JSON.stringify(`${at}\nhttp://a:b@far.test/, ${at}`)
    await page.evaluate(`navigator.clipboard.writeText(${pasted})`)
    await to.press("ControlOrMeta+V")
    expect(await chips(tab).allInnerTexts()).toEqual([
      expect.stringMatching(/^✓\s*\S+one,two\s*×$/),
      expect.stringMatching(/^✗\s*ftp:\/\/far.test\/x\s*no name and no http or https.*\s*×$/),
      expect.stringMatching(/^✓\s*\S+chips\s*×$/),
      expect.stringMatching(/^✗\s*http:\S+\s*with a user name or password\s*×$/)
    ])
    await page.getByText("4 addresses, 2 with a fault.").waitFor()
    expect(await faultsOf(tab)).toEqual([])
    await pictures(tab, "chips")
    await page.getByLabel("What it is about").fill("chips")
    await page.getByLabel("Address of the message").fill(`${base}/problems`)
    // The browser does not send a form with a fault.
    await page.getByRole("button", { name: "Send" }).click()
    expect(await to.evaluate((node) => node.matches(":invalid:focus"))).toBe(true)
    await page.getByRole("button", { name: "Remove http://a:b@far.test/" }).click()
    await page.getByRole("button", { name: "Remove ftp://far.test/x" }).click()
    await page.getByText("2 addresses.").waitFor()
    await to.fill("chips")
    await to.press("Enter")
    expect(await chips(tab).last().innerText()).toMatch(/^✓\s*chips\s*×$/)
    await page.getByRole("button", { name: "Remove chips" }).click()
    // Backspace takes the last address back into the field.
    await to.press("Backspace")
    expect(await to.inputValue()).toBe(at)
    await to.fill(`${at}?three`)
    await page.getByRole("button", { name: "Send" }).click()
    await page.getByRole("heading", { name: "chips" }).waitFor()
    const links = await page.locator("#recipients td:first-child a").all()
    expect(await Promise.all(links.map((one) => one.getAttribute("href"))))
      .toEqual([`${at}?one,two`, `${at}?three`])
    await tab.close()
  })
})

it("shows on an open page that its notification was removed elsewhere", async () => {
  const tab = await openTab(browser, { admin: true })
  const other = await openTab(browser, { admin: true, script: false })
  const silent = await startReceiver()
  await tab.page.goto(`${base}/outgoing/admin`)
  await tab.page.getByLabel("To", { exact: true }).fill(silent.uri)
  await tab.page.getByLabel("What it is about").fill("in vain")
  await tab.page.getByLabel("Address of the message").fill(`${base}/problems`)
  await tab.page.getByRole("button", { name: "Send" }).click()
  await tab.expects(410).page.getByText("This page changes by itself.").waitFor()
  await other.page.goto(tab.page.url())
  await other.page.getByRole("button", { name: "Remove" }).click()
  await tab.page.getByText("This is no longer here.").waitFor()
  await Promise.all([tab.close(), other.close()])
})

describe.each(ways)("a registration (%s)", (way, person) => {
  it("is created, verified, rotated and deleted", async () => {
    const tab = await openTab(browser, person)
    const { page } = tab
    const mailbox = await openMailbox(tab, `pushing-${way}`)
    let echoing = false
    const pushes: Array<string> = []
    const origin = await receiver((received, response) => {
      if (!echoing) return void response.writeHead(404).end()
      if (echoes(received, response)) return
      pushes.push(received.body)
      response.writeHead(204).end()
    })
    await page.goto(mailbox)
    await page.getByRole("link", { name: "Push registrations" }).click()
    await pictures(tab, `registrations-${way}-before`)
    await page.getByLabel("Callback").fill(`${origin}/hook`)
    await page.getByRole("button", { name: "Register" }).click()
    const secret = await page.locator("code", { hasText: "whsec_" }).innerText()
    await pictures(tab, `registration-${way}-secret`)
    await page.getByRole("link", { name: "Status of the registration" }).click()
    const address = page.url()
    const status = (text: string) =>
      eventually(updatedWithinMs, text, async () => {
        await page.goto(address)
        return await page.locator("main").getByText(text).count() > 0 ? true : undefined
      }, 100)
    await status("answered 404")
    expect(await page.content()).not.toContain(secret)
    await pictures(tab, `registration-${way}-unverified`)
    echoing = true
    await page.getByRole("button", { name: "Verify" }).click()
    await page.waitForURL(address)
    await status("✓ active")
    await deposit(tab, mailbox, "pushed")
    await eventually(updatedWithinMs, "a push", () => pushes.length > 0 ? true : undefined)
    await page.goto(address)
    await pictures(tab, `registration-${way}-active`)
    await page.getByRole("button", { name: "Make a new secret" }).click()
    const next = await page.locator("code", { hasText: "whsec_" }).innerText()
    expect(next).not.toBe(secret)
    await pictures(tab, `registration-${way}-rotated`)
    await page.goto(`${mailbox}/registrations`)
    await pictures(tab, `registrations-${way}-after`)
    await page.getByRole("link", { name: `${origin}/hook`.slice("http://".length) }).click()
    await page.getByRole("button", { name: "End", exact: true }).click()
    await page.waitForURL(`${mailbox}/registrations`)
    await eventually(updatedWithinMs, "it is off the list", async () => {
      await page.goto(`${mailbox}/registrations`)
      return await page.getByText("There is nothing here.").count() === 1 ? true : undefined
    }, 100)
    await tab.close()
  })
})

describe.each(ways)("a cabinet (%s)", (way, person) => {
  it("is created, read, changed and removed", async () => {
    const tab = await openTab(browser, person)
    const { page } = tab
    const first = await openMailbox(tab, `first-${way}`)
    const second = await openMailbox(tab, `second-${way}`)
    await deposit(tab, first, "about keys")
    await deposit(tab, second, "about locks")
    await page.goto(base)
    await page.getByRole("link", { name: "A cabinet" }).click()
    await pictures(tab, `cabinets-${way}`)
    await page.getByLabel("Title").fill("Keys & locks")
    await page.getByLabel("Mailboxes").fill(`${first}\n${second}`)
    await page.getByRole("button", { name: "Create" }).click()
    await page.getByRole("heading", { name: "Keys & locks" }).waitFor()
    await pictures(tab, `cabinet-${way}-made`)
    await page.getByRole("link", { name: "The notifications in it" }).click()
    // By role: a control named "contains" hides that method of its form from other locators.
    await page.getByRole("link", { name: "about locks" }).waitFor()
    expect(await page.locator(".entries > li").count()).toBe(2)
    await pictures(tab, `cabinet-${way}-read`)
    await page.getByLabel("Only notifications with this text").fill("keys")
    await page.getByRole("button", { name: "Change" }).click()
    await page.getByRole("link", { name: "about locks" }).waitFor({ state: "detached" })
    expect(await page.locator(".entries > li").count()).toBe(1)
    await page.getByRole("button", { name: "Remove" }).click()
    await page.waitForURL(`${base}/cabinets`)
    expect(await page.getByText("Keys & locks").count()).toBe(0)
    await tab.close()
  })
})
