/** The list of a mailbox in a browser: its keys, and what its script does. */
import { gzipSync } from "node:zlib"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { pageRemovalsMax, removalUndoMs } from "../../http/limits.ts"
import { faultsOf } from "./browser/axe.ts"
import { launchBrowser, openTab, type Person, signIn, type Tab } from "./browser/browser.ts"
import { asAdmin, expectStatus, openMailbox, postXml, send } from "./client.ts"
import { cleanUp, type Service, start } from "./process.ts"

/** The most that the scripts of one page may take, compressed. */
const scriptBytesMax = 60_000

let service: Service
let browser: Browser
let base: string

beforeAll(async () => {
  browser = await launchBrowser()
  service = await start({ env: { BASE_URL: "" } })
  base = `http://localhost:${service.port}`
})

afterAll(async () => {
  await browser?.close()
  cleanUp()
})

/** A mailbox with these texts, oldest first; returns the path of its list. */
const mailboxWith = async (name: string, ...texts: ReadonlyArray<string>): Promise<string> => {
  const path = new URL((await openMailbox(base, name)).path).pathname
  const headers = { "content-type": "text/plain" }
  for (const body of texts) {
    expectStatus(await send(base, path, { method: "POST", headers, body }), 202)
  }
  return `${path}?read=`
}

const openList = async (path: string, person: Person = {}): Promise<Tab> => {
  const tab = await openTab(browser, { admin: true, at: "desk", ...person })
  await tab.page.goto(`${base}${path}`)
  return tab
}

/** The text of the focused element. */
const focused = async ({ page }: Tab): Promise<string> =>
  String(await page.evaluate("document.activeElement.textContent")).trim()

const isDialogOpen = ({ page }: Tab): Promise<boolean> => page.locator("#keys").isVisible()

describe("the keys of a list", () => {
  it("move between the notifications, and open one", async () => {
    const tab = await openList(await mailboxWith("moving", "one", "two", "three"))
    const { page } = tab
    for (
      const [key, subject] of [
        ["j", "three"],
        ["j", "two"],
        ["ArrowDown", "one"],
        ["j", "one"],
        ["ArrowUp", "two"],
        ["k", "three"],
        ["k", "three"],
        ["j", "two"]
      ] as const
    ) {
      await page.keyboard.press(key)
      expect(await focused(tab)).toBe(subject)
    }
    const ring = "getComputedStyle(document.activeElement).outlineStyle"
    expect(await page.evaluate(ring)).toBe("solid")
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "two" }).waitFor()
    await tab.close()
  })

  it("mark as read and as unread, for all readers", async () => {
    const path = await mailboxWith("marking", "first", "second")
    const tab = await openList(path)
    const { page } = tab
    const unread = page.locator(".entries > li:not(.read)")
    // Without a focused notification the key does nothing.
    await page.keyboard.press("r")
    await page.keyboard.press("j")
    await page.keyboard.press("r")
    await page.getByText("Marked as read.").waitFor()
    await expect.poll(() => unread.count()).toBe(1)
    expect(await page.locator(".entries b").allInnerTexts()).toEqual(["● unread"])
    expect(await focused(tab)).toBe("second")
    const listed = async () => (await send(base, path, { headers: asAdmin })).text
    expect((await listed()).match(/read="true"/g)).toHaveLength(1)
    await page.keyboard.press("r")
    await page.getByText("Marked as unread.").waitFor()
    await expect.poll(() => unread.count()).toBe(2)
    expect(await listed()).not.toContain("read=\"true\"")
    await tab.close()
  })

  it("do nothing in a field, with a modifier, or when the arrows scroll", async () => {
    const tab = await openList(await mailboxWith("typing", "one", "two"))
    const { page } = tab
    for (const key of ["Control+j", "Alt+j", "Meta+j", "Shift+J", "ArrowDown"]) {
      await page.keyboard.press(key)
      expect(await page.evaluate("document.activeElement === document.body"), key).toBe(true)
    }
    await page.keyboard.press("/")
    await page.keyboard.type("jkr?/")
    const search = page.getByRole("searchbox")
    expect(await search.inputValue()).toBe("jkr?/")
    expect(await page.evaluate("document.activeElement.name")).toBe("q")
    expect(await isDialogOpen(tab)).toBe(false)
    await tab.close()
  })

  it("are named by a dialog, which switches them off for all pages", async () => {
    const path = await mailboxWith("switching", "one", "two")
    const tab = await openList(path)
    const { page } = tab
    await page.keyboard.press("j")
    await page.keyboard.press("?")
    expect(await isDialogOpen(tab)).toBe(true)
    expect(await faultsOf(tab)).toEqual([])
    await tab.inspect("list-keys")
    // The keys of the list do nothing behind the dialog.
    await page.keyboard.press("j")
    await page.keyboard.press("Escape")
    expect(await isDialogOpen(tab)).toBe(false)
    expect(await focused(tab)).toBe("two")
    await page.keyboard.press("?")
    await page.getByLabel("Use these keys").uncheck()
    await page.getByRole("button", { name: "Close" }).click()
    for (const key of ["?", "j"]) await page.keyboard.press(key)
    expect(await isDialogOpen(tab)).toBe(false)
    expect(await focused(tab)).toBe("two")
    await page.goto(`${base}${path}`)
    await page.keyboard.press("j")
    expect(await page.evaluate("document.activeElement === document.body")).toBe(true)
    await page.getByRole("button", { name: "Keys" }).click()
    await page.getByLabel("Use these keys").check()
    await page.getByRole("button", { name: "Close" }).click()
    await page.keyboard.press("j")
    expect(await focused(tab)).toBe("two")
    await tab.close()
  })
})

/** The descriptions that a mailbox has, oldest first. */
const kept = async (path: string): Promise<ReadonlyArray<string>> => {
  const { text } = await send(base, path, { headers: asAdmin })
  return [...text.matchAll(/<description>([^<]*)</g)].map(([, about = ""]) => about)
}

const shownRows = ({ page }: Tab): Promise<ReadonlyArray<string>> =>
  page.locator(".entries > li:visible > p:first-child").allInnerTexts()

const removeAt = async ({ page }: Tab, subject: string): Promise<void> => {
  await page.getByRole("button", { name: `Remove ${subject}`, exact: true }).click()
}

/** A list with a clock that the test moves, and the removals that its page sends. */
const openTimed = async (path: string) => {
  const tab = await openTab(browser, { admin: true, at: "desk" })
  const removals: Array<string> = []
  tab.page.on("request", (request) => {
    if (request.method() === "DELETE") removals.push(request.url())
  })
  await tab.page.clock.install()
  await tab.page.goto(`${base}${path}`)
  return { tab, removals }
}

describe("a removal from a list", () => {
  it("hides the row at once, and is sent when it can no longer be undone", async () => {
    const path = await mailboxWith("removing", "one", "two", "three")
    const { removals, tab } = await openTimed(path)
    await removeAt(tab, "three")
    expect(await tab.page.getByRole("status").allInnerTexts()).toContain("Removed. Undo")
    expect(await focused(tab)).toBe("two")
    await removeAt(tab, "one")
    await tab.page.getByText("2 removed.").waitFor()
    expect(await shownRows(tab)).toEqual(["two"])
    expect(removals).toEqual([])
    expect(await kept(path)).toEqual(["one", "two", "three"])
    await tab.page.clock.fastForward(removalUndoMs)
    await expect.poll(() => kept(path)).toEqual(["two"])
    await tab.page.getByText("2 removed.").waitFor({ state: "detached" })
    expect(await shownRows(tab)).toEqual(["two"])
    await tab.close()
  })

  it.each(["button", "key"])("is undone by a %s, and nothing is sent", async (by) => {
    const path = await mailboxWith(`undoing-${by}`, "one", "two", "three")
    const { removals, tab } = await openTimed(path)
    const { page } = tab
    await removeAt(tab, "two")
    await removeAt(tab, "one")
    if (by === "key") await page.keyboard.press("u")
    else await page.getByRole("button", { name: "Undo" }).click()
    await page.getByText("They are back.").waitFor()
    expect(await shownRows(tab)).toEqual(["three", "two", "one"])
    expect(await focused(tab)).toBe("two")
    await page.clock.fastForward(2 * removalUndoMs)
    // A removal after it shows that nothing else was sent.
    await removeAt(tab, "three")
    await page.clock.fastForward(removalUndoMs)
    await expect.poll(() => kept(path)).toEqual(["one", "two"])
    expect(removals).toHaveLength(1)
    await tab.close()
  })

  it("is sent when the page is left, and is not shown again", async () => {
    const path = await mailboxWith("leaving", "one", "two", "three")
    // The tool that adds credentials does not see what a page sends at its end; a browser does.
    const tab = await openTab(browser, { at: "desk" })
    await signIn(tab, base)
    // The page that comes next may still show the row, and repeats the removal.
    tab.expects(410)
    await tab.page.goto(`${base}${path}`)
    await removeAt(tab, "three")
    await tab.page.goto(`${base}/quotes`)
    await expect.poll(() => kept(path)).toEqual(["one", "two"])
    await tab.page.goto(`${base}${path}`)
    await removeAt(tab, "two")
    await tab.page.reload()
    await expect.poll(() => shownRows(tab)).toEqual(["one"])
    await expect.poll(() => kept(path)).toEqual(["one"])
    await tab.close()
  })

  it.each([
    [403, "“two” was not removed: the service answers 403. Sign in again"],
    [503, "“two” is perhaps not removed: the service answers 503. Reload this page"]
  ])("comes back after %i", async (status, message) => {
    const path = await mailboxWith(`failing-${status}`, "one", "two")
    const { tab } = await openTimed(path)
    tab.expects(status)
    await tab.page.route("**/notifications/*", (route) => route.fulfill({ status }))
    await removeAt(tab, "two")
    expect(await shownRows(tab)).toEqual(["one"])
    await tab.page.clock.fastForward(removalUndoMs)
    await tab.page.getByText(message).waitFor()
    expect(await shownRows(tab)).toEqual(["two", "one"])
    expect(await faultsOf(tab)).toEqual([])
    await tab.inspect(`list-removal-${status}`)
    await tab.close()
  })

  it("is left to the list by the page of a notification, and undone there", async () => {
    const path = await mailboxWith("leaving-one", "one", "two", "three")
    const { removals, tab } = await openTimed(path)
    const { page } = tab
    const removeOnItsPage = async (): Promise<void> => {
      await page.getByRole("link", { name: "two", exact: true }).click()
      await page.getByRole("heading", { name: "two" }).waitFor()
      await removeAt(tab, "two")
      await page.getByText("Removed.").waitFor()
      expect(page.url()).toBe(`${base}${path}`)
      expect(await shownRows(tab)).toEqual(["three", "one"])
    }
    await removeOnItsPage()
    expect(await focused(tab)).toBe("one")
    expect(await faultsOf(tab)).toEqual([])
    await tab.inspect("list-removal-left")
    await page.getByRole("button", { name: "Undo" }).click()
    await page.getByText("It is back.").waitFor()
    expect(await shownRows(tab)).toEqual(["three", "two", "one"])
    await page.clock.fastForward(2 * removalUndoMs)
    await removeOnItsPage()
    expect(removals).toEqual([])
    // A list that is loaded again repeats nothing that was undone.
    await page.clock.fastForward(removalUndoMs)
    await expect.poll(() => kept(path)).toEqual(["one", "three"])
    expect(removals).toHaveLength(1)
    await page.reload()
    expect(await shownRows(tab)).toEqual(["three", "one"])
    await tab.close()
  })

  it("can be undone on a list that does not show it, and on no other list", async () => {
    const path = await mailboxWith("left-out", "one", "two")
    const other = await mailboxWith("left-out-other", "three")
    const { removals, tab } = await openTimed(path)
    const { page } = tab
    await page.getByRole("link", { name: "one", exact: true }).click()
    await page.getByRole("heading", { name: "one" }).waitFor()
    // The browser shows another page than the list, such as a fault.
    await page.route(`**${path}`, (route) => route.fulfill({ status: 200, body: "" }))
    await removeAt(tab, "one")
    await page.waitForURL(`${base}${path}`)
    await page.unroute(`**${path}`)
    await page.goto(`${base}${other}`)
    expect(await page.getByText("Removed.").count()).toBe(0)
    await page.goto(`${base}${path}&q=two`)
    await page.getByText("Removed.").waitFor()
    expect(await focused(tab)).toBe("Undo")
    await page.keyboard.press("Enter")
    await page.getByText("It is back.").waitFor()
    await page.clock.fastForward(2 * removalUndoMs)
    await page.goto(`${base}${path}`)
    expect(await shownRows(tab)).toEqual(["two", "one"])
    expect(removals).toEqual([])
    await tab.close()
  })

  it.each(["list", "page"])("is asked for without a script: on the %s", async (from) => {
    const path = await mailboxWith(`asking-${from}`, "one", "two")
    const tab = await openList(path, { script: false })
    const { page } = tab
    const ask = async (): Promise<void> => {
      if (from === "page") await page.getByRole("link", { name: "two", exact: true }).click()
      await removeAt(tab, "two")
      expect(await tab.heading()).toBe("Remove “two”?")
    }
    await ask()
    await tab.inspect(`removal-asked-${from}`)
    await page.getByRole("link", { name: "Keep it" }).click()
    expect(await shownRows(tab)).toEqual(["two", "one"])
    await ask()
    await page.getByRole("main").getByRole("button", { name: "Remove" }).click()
    expect(await shownRows(tab)).toEqual(["one"])
    expect(await kept(path)).toEqual(["one"])
    await tab.close()
  })

  it("is sent before the next one where too many wait", async () => {
    const texts = Array.from({ length: pageRemovalsMax + 1 }, (_, at) => `text ${at}`)
    const path = await mailboxWith("many", ...texts)
    const { tab } = await openTimed(path)
    for (const text of texts) await removeAt(tab, text)
    await expect.poll(() => kept(path)).toEqual([`text ${pageRemovalsMax}`])
    await tab.page.getByText("Removed.").waitFor()
    expect(await focused(tab)).toBe("Undo")
    expect(await shownRows(tab)).toEqual([])
    await tab.close()
  })
})

it("an open page shows read marks and removals of other devices", async () => {
  const path = await mailboxWith("elsewhere", "first", "second")
  const tab = await openList(path)
  const rows = tab.page.locator(".entries > li")
  const unread = tab.page.locator(".entries b")
  await tab.page.getByText("This page changes by itself.").waitFor()
  await expect.poll(() => unread.count()).toBe(2)
  const { text } = await send(base, path, { headers: asAdmin })
  const [first = "", second = ""] = [...text.matchAll(/<notification href="([^"]+)"/g)]
    .map(([, href = ""]) => new URL(href).pathname)
  const change = async (method: string, at: string) =>
    expectStatus(await send(base, at, { method, headers: asAdmin }), 204)
  await change("PUT", `${second}/read`)
  await expect.poll(() => unread.count()).toBe(1)
  await change("DELETE", `${second}/read`)
  await expect.poll(() => unread.count()).toBe(2)
  await change("DELETE", first)
  await expect.poll(() => rows.count()).toBe(1)
  expect(await rows.innerText()).toContain("second")
  await tab.close()
})

it("a picture that is attached to a notification is shown on its page", async () => {
  const path = (await mailboxWith("pictured")).replace("?read=", "")
  // 2 by 1 pixels.
  const png =
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAADUlEQVR4nGM4oAAEBwAHBwIBqYD2FAAAAABJ" +
    "RU5ErkJggg=="
  const item = "<item><description>A picture</description>" +
    `<content type="image/png" encoding="base64">${png}</content></item>`
  const deposited = await postXml(base, path, `<notification>${item}</notification>`)
  expectStatus(deposited, 202)
  const tab = await openList(`${path}?read=`)
  const { page } = tab
  expect(await page.locator(".entries > li").innerText()).toContain("image/png, ")
  await page.getByRole("link", { name: "A picture", exact: true }).click()
  const picture = page.getByRole("img", { name: "The message, a picture" })
  await picture.scrollIntoViewIfNeeded()
  const sizes = "[...document.querySelectorAll('img.message')].map((one) => " +
    "[one.complete, one.naturalWidth, one.naturalHeight])"
  await expect.poll(() => page.evaluate(sizes)).toEqual([[true, 2, 1]])
  await tab.inspect("notification-picture")
  await tab.close()
})

it("a long label of a checkbox stays beside it, and what strangers write is isolated", async () => {
  const path = await mailboxWith("narrow", "one")
  const secret = {
    method: "PUT",
    headers: { ...asAdmin, "content-type": "application/xml" },
    body: "<webhook-secret><secret>of-these-webhooks</secret></webhook-secret>"
  }
  expectStatus(await send(base, path.replace("?read=", "/webhook-secret"), secret), 204)
  const tab = await openList(path)
  const { page } = tab
  await page.setViewportSize({ width: 390, height: 800 })
  await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
  // The right edge of each checkbox, and the left edge of its label.
  const edges = await page.evaluate(`[...document.querySelectorAll("form .check")].map((one) => [
    one.querySelector("input").getBoundingClientRect().right,
    one.querySelector("label").getBoundingClientRect().left,
    one.querySelector("label").textContent
  ])`) as ReadonlyArray<readonly [box: number, label: number, text: string]>
  expect(edges.map(([, , text]) => text))
    .toContain("Remove the secret: webhooks need no signature")
  for (const [box, label, text] of edges) expect(label, text).toBeGreaterThanOrEqual(box)
  const isolated = "getComputedStyle(document.querySelector('.entries a')).unicodeBidi"
  expect(await page.evaluate(isolated)).toBe("isolate")
  await tab.close()
})

it("the scripts of a list are small", async () => {
  const path = await mailboxWith("small", "one")
  const { text } = await send(base, path, { headers: { ...asAdmin, accept: "text/html" } })
  const scripts = [...text.matchAll(/<script src="([^"]+)"/g)].map(([, src = ""]) => src)
  expect(scripts).toEqual(["/live.js", "/list.js", "/notify.js", "/page.js"])
  const bodies = await Promise.all(scripts.map(async (src) => (await send(base, src)).text))
  expect(gzipSync(bodies.join("")).length).toBeLessThan(scriptBytesMax)
})
