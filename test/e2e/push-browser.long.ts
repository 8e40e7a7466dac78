/**
 * Web Push, from the button of a mailbox's page to what the browser shows. In Firefox the whole
 * way, with a push service on loopback; Chromium takes no other push service than Google's, so that
 * it is told its subscription, and gets its pushes as DevTools deliver them.
 */
import { isDeepStrictEqual } from "node:util"
import type { Browser, Page, Worker } from "playwright-core"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { type Browser as Subscriber, decryptPush, newBrowser } from "../actors/web-push.ts"
import { startFirefox } from "../security/browsers/firefox.ts"
import type { BrowserTab, TestBrowser } from "../security/browsers/tab.ts"
import { faultsOf } from "./browser/axe.ts"
import { launchBrowser, openTab, signIn, type Tab } from "./browser/browser.ts"
import { deliverPush, subscribingScript, subscriptionAt } from "./browser/chromium-push.ts"
import { type PushService, startPushService } from "./browser/push-service.ts"
import { asAdmin, expectStatus, openMailbox, putXml, send } from "./client.ts"
import { adminToken, cleanUp, eventually, type Service, start, within } from "./process.ts"

const withinMs = 60_000

let service: Service
let pushService: PushService
let base: string

beforeAll(async () => {
  pushService = await startPushService()
  service = await start({ env: { BASE_URL: "", OUTBOUND_ALLOW: "127.0.0.0/8" } })
  base = `http://localhost:${service.port}`
})

afterAll(() => {
  pushService?.close()
  cleanUp()
})

const open = async (name: string): Promise<string> =>
  new URL((await openMailbox(base, name)).path, base).pathname

/** Deposits a text; returns the path of its notification. */
const deposit = async (mailbox: string, body: string): Promise<string> => {
  const headers = { "content-type": "text/plain" }
  const answer = expectStatus(await send(base, mailbox, { method: "POST", headers, body }), 202)
  return new URL(answer.headers.get("location") ?? "").pathname
}

interface Registration {
  readonly href: string
  readonly callback: string
  readonly form: string
  readonly status: string
}

/** The registrations of a mailbox. */
const registrations = async (mailbox: string): Promise<ReadonlyArray<Registration>> => {
  const headers = { ...asAdmin, accept: "application/json" }
  const { text } = await send(base, `${mailbox}/registrations`, { headers })
  // The contract of the resource is tested elsewhere.
  return (JSON.parse(text) as { readonly registration: ReadonlyArray<Registration> }).registration
}

/** The pushes to a channel, once there are so many. */
const pushesTo = (channel: string, count: number) =>
  eventually(withinMs, `${count} pushes to ${channel}`, () => {
    const pushes = pushService.pushes(channel)
    return pushes.length >= count ? pushes : undefined
  })

/** What a browser shows. */
interface Shown {
  readonly title: string
  readonly body: string
}

describe("Chromium", () => {
  let browser: Browser
  let subscriber: Subscriber
  let tab: Tab

  beforeAll(async () => {
    browser = await launchBrowser()
    subscriber = await newBrowser()
  })
  afterEach(() => tab?.close())
  afterAll(() => browser?.close())

  /** What the subscription of this browser at a channel is, as JSON. */
  const subscription = (channel: string): string =>
    subscriptionAt(pushService.at(channel), subscriber)

  /** A page of a mailbox, whose reader is signed in. */
  const openPage = async (mailbox: string, channel: string, isAllowed = true): Promise<Page> => {
    tab = await openTab(browser, { at: "phone" })
    const { page } = tab
    const context = page.context()
    if (isAllowed) await context.grantPermissions(["notifications"], { origin: base })
    await page.addInitScript(subscribingScript(pushService.at(channel), subscriber))
    await signIn(tab, base)
    await page.goto(`${base}${mailbox}`)
    return page
  }

  const begin = async (page: Page): Promise<Worker> => {
    await page.getByRole("button", { name: "Notify me" }).click()
    await page.getByText("This browser shows what arrives here").waitFor()
    return eventually(withinMs, "the service worker runs", () => page.context().serviceWorkers()[0])
  }

  const deliver = (page: Page, data: string): Promise<void> => deliverPush(page, base, data)

  /** A push of a notification with this number. */
  const pushOf = (mailbox: string, n: number, description: string, count?: string): string =>
    JSON.stringify({
      mailbox: `${base}${mailbox}`,
      count,
      notification: { href: `${base}${mailbox}/notifications/${n}-x`, description }
    })

  const shownOnce = (worker: Worker, ...expected: ReadonlyArray<Shown>) =>
    eventually(withinMs, JSON.stringify(expected), async () => {
      const shown = await worker.evaluate(`registration.getNotifications()
        .then((all) => all.map(({ title, body }) => ({ title, body })))`) as ReadonlyArray<Shown>
      return isDeepStrictEqual(new Set(shown), new Set(expected)) ? shown : undefined
    })

  /** The page that a click on the only notification opens: no script can click as a person. */
  const clicked = (worker: Worker): Promise<unknown> =>
    within(
      withinMs,
      "a page opens",
      worker.evaluate(`(async () => {
        const [notification] = await registration.getNotifications()
        clients.matchAll = async () => []
        const opening = new Promise((resolve) => { clients.openWindow = resolve })
        const event = new NotificationEvent("notificationclick", { notification })
        event.waitUntil = () => {}
        dispatchEvent(event)
        return opening
      })()`)
    )

  /** The push service ends the subscription: the browser tells the worker so. */
  const endSubscription = (worker: Worker, next: string): Promise<unknown> =>
    within(
      withinMs,
      "the worker registers again",
      worker.evaluate(`(async () => {
        PushManager.prototype.subscribe = async () => (${subscription(next)})
        const event = new ExtendableEvent("pushsubscriptionchange")
        const renewed = new Promise((resolve) => { event.waitUntil = resolve })
        dispatchEvent(event)
        return renewed
      })()`)
    )

  it("is registered by a button, shows what arrives, and opens it", async () => {
    const mailbox = await open("pushed")
    const page = await openPage(mailbox, "one")
    expect(await faultsOf(tab)).toEqual([])
    const worker = await begin(page)
    await tab.inspect("notified-phone")
    expect(await faultsOf(tab)).toEqual([])
    const options = JSON.parse(String(await page.evaluate(`localStorage.getItem("options")`)))
    const listed = await send(base, `${mailbox}/registrations`, { headers: asAdmin })
    expect(listed.text).toContain(`applicationServerKey="${options.applicationServerKey}"`)
    expect(options.userVisibleOnly).toBe(true)
    expect(await registrations(mailbox)).toMatchObject([
      { form: "webpush", status: "active", callback: pushService.at("one") }
    ])
    await page.goto(`${base}/problems`)

    const path = await deposit(mailbox, "Tea is ready")
    const [push] = await pushesTo("one", 1)
    const data = await decryptPush(subscriber, push?.body ?? Buffer.alloc(0))
    await deliver(page, data)
    await shownOnce(worker, { title: "pushed", body: "Tea is ready" })
    expect(await clicked(worker)).toBe(`${base}${path}`)
    await shownOnce(worker)
  })

  it("shows one notification for each mailbox, and counts what comes", async () => {
    const mailbox = await open("counted")
    const page = await openPage(mailbox, "counted")
    const worker = await begin(page)
    await page.goto(`${base}/problems`)
    await deliver(page, pushOf(mailbox, 1, "first"))
    await shownOnce(worker, { title: "counted", body: "first" })
    // A push that comes twice counts once.
    for (const [n, text] of [[1, "first"], [2, "second"]] as const) {
      await deliver(page, pushOf(mailbox, n, text))
    }
    // One push stands for several notifications.
    await deliver(page, pushOf(mailbox, 4, "fourth", "2"))
    await shownOnce(worker, { title: "counted (4)", body: "fourth" })
    expect(await clicked(worker)).toBe(`${base}${mailbox}`)
    await deliver(page, pushOf(mailbox, 5, "fifth"))
    await shownOnce(worker, { title: "counted", body: "fifth" })
    await deliver(page, JSON.stringify({ mailbox: `${base}${mailbox}`, deleted: "true" }))
    await shownOnce(worker, { title: "counted", body: "This mailbox has been removed." })
    expect(await clicked(worker)).toBe(`${base}/mailboxes`)
  })

  /** Records each badge of the icon: headless browsers have no icon. */
  const recordBadges = `
    globalThis.badges = []
    navigator.setAppBadge = async (count) => void badges.push(count)`

  /** The badge that was set last, once it is this one. */
  const badgeIs = (place: Pick<Page, "evaluate">, count: number) =>
    eventually(
      withinMs,
      `a badge of ${count}`,
      async () => await place.evaluate("badges.at(-1)") === count ? true : undefined
    )

  it("sets the badge of the icon to what has come, and clears it", async () => {
    const [mailbox, other] = [await open("badged"), await open("badged-too")]
    const page = await openPage(mailbox, "badged")
    await page.addInitScript(recordBadges)
    const worker = await begin(page)
    await worker.evaluate(recordBadges)
    await page.goto(`${base}/problems`)
    await deliver(page, pushOf(mailbox, 1, "first"))
    await badgeIs(worker, 1)
    await deliver(page, pushOf(mailbox, 4, "fourth", "3"))
    await badgeIs(worker, 4)
    await deliver(page, pushOf(other, 1, "elsewhere"))
    await badgeIs(worker, 5)
    // The page of one mailbox leaves what has come to the other.
    await page.goto(`${base}${mailbox}`)
    await badgeIs(page, 1)
    await page.goto(`${base}${other}`)
    await badgeIs(page, 0)
    await page.goto(`${base}/problems`)
    await deliver(page, pushOf(other, 2, "again"))
    await badgeIs(worker, 1)
    await clicked(worker)
    await badgeIs(worker, 0)
    expect(await worker.evaluate("badges")).toEqual([1, 4, 5, 1, 0])
  })

  it("shows markup as text, and opens this service only", async () => {
    const mailbox = await open("hostile")
    const page = await openPage(mailbox, "hostile")
    const worker = await begin(page)
    await page.goto(`${base}/problems`)
    const markup = "<img src=x onerror=alert(1)>"
    for (
      const href of ["https://x.example//attacker.example/a", "https://x.example/\\\\a.example"]
    ) {
      const received = "never"
      const elsewhere = { href, received, description: markup }
      const mailboxElsewhere = "https://attacker.example/mailboxes/hostile"
      const push = { mailbox: mailboxElsewhere, notification: elsewhere }
      await deliver(page, JSON.stringify(push))
      await shownOnce(worker, { title: "hostile", body: markup })
      expect(new URL(String(await clicked(worker))).origin).toBe(base)
    }
    // A push of another kind shows something, too: the browser requires it.
    await deliver(page, "no JSON")
    await shownOnce(worker, { title: "mailboxes", body: "A notification has arrived." })
  })

  it("closes what it shows when the mailbox is read, and is removed by the button", async () => {
    const mailbox = await open("ended")
    const other = await open("not-ended")
    const page = await openPage(mailbox, "two")
    const worker = await begin(page)
    await page.goto(`${base}/problems`)
    for (const each of [mailbox, other]) await deliver(page, pushOf(each, 1, "new"))
    const left = { title: "not-ended", body: "new" }
    await shownOnce(worker, { title: "ended", body: "new" }, left)
    await page.goto(`${base}${mailbox}`)
    await shownOnce(worker, left)
    // It has been closed as soon as the other one, which came after it, is shown.
    await deliver(page, pushOf(mailbox, 2, "seen"))
    await deliver(page, pushOf(other, 2, "newer"))
    await shownOnce(worker, { title: "not-ended (2)", body: "newer" })
    await page.getByRole("button", { name: "Stop notifications" }).click()
    await page.getByText("This browser no longer shows what arrives here.").waitFor()
    expect(await registrations(mailbox)).toEqual([])
    await page.reload()
    await page.getByRole("button", { name: "Notify me" }).waitFor()
  })

  it("says that it is no longer registered, or paused", async () => {
    const mailbox = await open("removed-elsewhere")
    const page = await openPage(mailbox, "three")
    await begin(page)
    const [registration] = await registrations(mailbox)
    const path = new URL(registration?.href ?? "").pathname
    expectStatus(await send(base, path, { method: "DELETE", headers: asAdmin }), 204)
    await page.reload()
    await page.getByText("This browser is no longer registered here.").waitFor()
    await begin(page)
    expect(await registrations(mailbox)).toHaveLength(1)
    expectStatus(await putXml(base, path, `<registration status="paused"/>`, asAdmin), 200)
    await page.reload()
    await page.getByText("It is paused, and its registration resumes it.").waitFor()
    await page.getByRole("button", { name: "Stop notifications" }).waitFor()
  })

  it("registers again at all mailboxes when the push service ends its subscription", async () => {
    const mailboxes = [await open("again-1"), await open("again-2")]
    const page = await openPage(mailboxes[0] ?? "", "four")
    await begin(page)
    await page.goto(`${base}${mailboxes[1]}`)
    const worker = await begin(page)
    const [first = "", second = ""] = mailboxes
    const [held] = await registrations(first)
    const path = new URL(held?.href ?? "").pathname
    expectStatus(await putXml(base, path, `<registration status="paused"/>`, asAdmin), 200)
    await endSubscription(worker, "five")
    // A pause stays one, and the old registrations have ended.
    const callback = pushService.at("five")
    expect(await registrations(first)).toMatchObject([{ callback, status: "paused" }])
    expect(await registrations(second)).toMatchObject([{ callback, status: "active" }])
    // The page was opened before: the button ends what is there now.
    const stored = JSON.stringify(subscription("five"))
    await page.evaluate(`localStorage.setItem("subscription", ${stored})`)
    await page.getByRole("button", { name: "Stop notifications" }).click()
    await page.getByText("This browser no longer shows what arrives here.").waitFor()
    expect(await registrations(second)).toEqual([])
  })

  it("registers again everywhere by the button, when the subscription is another one", async () => {
    const other = await open("everywhere-1")
    const page = await openPage(other, "ten")
    await begin(page)
    const mailbox = await open("everywhere-2")
    await page.goto(`${base}${mailbox}`)
    await page.evaluate(`PushManager.prototype.subscribe = async () =>
      (${subscription("eleven")})`)
    await begin(page)
    for (const each of [other, mailbox]) {
      const callbacks = (await registrations(each)).map(({ callback }) => callback)
      expect(callbacks).toContain(pushService.at("eleven"))
    }
  })

  it("shows where it could not register again", async () => {
    const mailbox = await open("signed-out")
    const page = await openPage(mailbox, "six")
    const worker = await begin(page)
    await page.goto(`${base}/problems`)
    await page.context().clearCookies()
    await endSubscription(worker, "seven")
    const [shown] = await eventually(withinMs, "it is shown", async () => {
      const all = await worker.evaluate(`registration.getNotifications()
        .then((all) => all.map(({ title, body }) => ({ title, body })))`) as ReadonlyArray<Shown>
      return all.length > 0 ? all : undefined
    })
    expect(shown).toMatchObject({
      title: "signed-out",
      body: expect.stringContaining("no longer shows what arrives here")
    })
    expect(await clicked(worker)).toBe(`${base}${mailbox}`)
  })

  it("forgets everything when it is signed out", async () => {
    const mailbox = await open("forgotten")
    const page = await openPage(mailbox, "eight")
    await begin(page)
    await page.getByRole("button", { name: "Sign out admin" }).click()
    await page.getByRole("heading", { name: "Signed out" }).waitFor()
    await expect.poll(() =>
      page.evaluate(`navigator.serviceWorker.getRegistrations().then(({ length }) => length)`)
    ).toBe(0)
    expect(await page.evaluate(`caches.keys()`)).toEqual([])
  })

  it("says why it is not registered: by its own settings, or by the service", async () => {
    const mailbox = await open("refused")
    const page = await openPage(mailbox, "nine", false)
    await page.getByRole("button", { name: "Notify me" }).click()
    await page.getByText("This browser does not show notifications of this site.").waitFor()
    const context = page.context()
    await context.grantPermissions(["notifications"], { origin: base })
    tab.expects(401)
    await context.clearCookies()
    await page.getByRole("button", { name: "Notify me" }).click()
    await page.getByText("This browser is not registered: the service answers 401.").waitFor()
    expect(await registrations(mailbox)).toEqual([])
  })

  it("has no button for who reads by a shared address alone", async () => {
    const { path, shared } = await openMailbox(base, "shared-only")
    tab = await openTab(browser)
    await tab.page.goto(shared)
    await tab.page.getByRole("button", { name: "Keys" }).waitFor()
    const place = tab.page.locator("[data-registrations]")
    expect(await place.count()).toBe(0)
    await signIn(tab, base)
    await tab.page.goto(path)
    expect(await place.count()).toBe(1)
  })

  it("may install the pages", async () => {
    tab = await openTab(browser)
    const { page } = tab
    await page.goto(`${base}/`)
    const session = await page.context().newCDPSession(page)
    const { data = "", errors, url } = await session.send("Page.getAppManifest")
    expect([errors, url]).toEqual([[], `${base}/manifest.webmanifest`])
    const { installabilityErrors } = await session.send("Page.getInstallabilityErrors")
    // Tests have no window that the browser could put an icon into.
    const ignored = new Set(["in-incognito"])
    expect(installabilityErrors.map(({ errorId }) => errorId).filter((id) => !ignored.has(id)))
      .toEqual([])
    const { icons } = JSON.parse(data)
    const { sizes, src } = icons.at(-1)
    const { bytes } = await send(base, src)
    // PNG, section 11.2.1.
    expect(`${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`).toBe(sizes)
  })
})

describe("Firefox", () => {
  let browser: TestBrowser
  let tab: BrowserTab

  beforeAll(async () => {
    browser = await startFirefox({
      // A machine of tests has no desktop that shows notifications.
      "alerts.useSystemBackend": false,
      "dom.push.connection.enabled": true,
      "dom.push.retryBaseInterval": 100,
      "dom.push.serverURL": pushService.origin.replace("http:", "ws:"),
      "dom.push.testing.allowInsecureServerURL": true,
      "dom.webnotifications.requireuserinteraction": false,
      "permissions.default.desktop-notification": 1
    })
    tab = await browser.openTab()
    await tab.visit(`${base}/sign-in`)
    const signingIn = JSON.stringify({ account: "admin", token: adminToken })
    const body = `new URLSearchParams(${signingIn})`
    expect(await tab.evaluate(`fetch("", { method: "POST", body: ${body} }).then((r) => r.ok)`))
      .toBe(true)
  })
  afterAll(() => browser?.close())

  const text = (): Promise<unknown> => tab.evaluate(`document.querySelector(".choices").innerText`)

  const press = async (name: string, result: string): Promise<void> => {
    const button = `[...document.querySelectorAll("button")].find((each) =>
      each.textContent === "${name}")`
    await eventually(
      withinMs,
      `a button "${name}"`,
      async () => await tab.evaluate(`${button} !== undefined`) === true ? true : undefined
    )
    await tab.evaluate(`${button}.click()`)
    let shown = ""
    await eventually(withinMs, result, async () => {
      shown = String(await text())
      return shown.includes(result) ? true : undefined
    }).catch((error) => expect.fail(`${error}, but: ${shown}`))
  }

  const shownOnce = (count: number) =>
    eventually(withinMs, `${count} notifications are shown`, async () => {
      const shown = await tab.evaluate(`navigator.serviceWorker.getRegistration()
        .then((worker) => worker.getNotifications())
        .then((all) => all.map(({ title, body }) => ({ title, body })))`)
      // The expression makes it.
      const all = shown as ReadonlyArray<Shown>
      return all.length === count ? all : undefined
    })

  /** The only channel by which the browser is subscribed, once it is another one than this. */
  const channelAfter = (before?: string): Promise<string> =>
    eventually(withinMs, "the browser subscribes", () => {
      const [channel] = pushService.channels()
      return channel === before ? undefined : channel
    })

  it("subscribes at a push service, decrypts pushes, and shows them", async () => {
    const mailbox = await open("firefox")
    await tab.visit(`${base}${mailbox}`)
    await press("Notify me", "This browser shows what arrives here")
    const channel = await channelAfter()
    expect(await registrations(mailbox)).toMatchObject([
      { form: "webpush", status: "active", callback: pushService.at(channel) }
    ])
    await tab.visit(`${base}/`)
    await deposit(mailbox, "Tea is ready")
    expect(await shownOnce(1)).toEqual([{ title: "firefox", body: "Tea is ready" }])
    expect(tab.sightings()).toEqual([])

    await tab.visit(`${base}${mailbox}`)
    await shownOnce(0)
    // The push service loses everything: the browser subscribes again without a page.
    pushService.forget()
    const later = await channelAfter(channel)
    await eventually(withinMs, "the browser is registered again", async () => {
      const all = await registrations(mailbox)
      return all.some(({ callback }) => callback === pushService.at(later)) ? true : undefined
    })
    await tab.visit(`${base}/`)
    await deposit(mailbox, "It is cold")
    const [shown] = await shownOnce(1)
    expect(shown).toEqual({ title: "firefox", body: "It is cold" })

    await tab.visit(`${base}${mailbox}`)
    await press("Stop notifications", "This browser no longer shows what arrives here.")
    expect(await registrations(mailbox)).toEqual([])
  })
})
