/**
 * The messages and the past of actors, which a node with INSPECTOR=on records, in a browser: from
 * the page of the cluster to a message, its actor and the commits of that, by keyboard. axe-core
 * finds no fault at three widths in both color schemes.
 */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { everyLookFaultsOf } from "./browser/axe.ts"
import { launchBrowser, openTab, signIn, type Tab } from "./browser/browser.ts"
import { Keyboard } from "./browser/keyboard.ts"
import { asAdmin, expectStatus, notification, openMailbox, postXml, putXml,
  send } from "./client.ts"
import { adminToken, cleanUp, type Service, start } from "./process.ts"

let service: Service
let browser: Browser
let base: string

beforeAll(async () => {
  browser = await launchBrowser()
  service = await start({ env: { BASE_URL: "", INSPECTOR: "on" } })
  base = `http://localhost:${service.port}`
  await openMailbox(base, "alice")
  const titled = "<mailbox><title>The post of Alice</title></mailbox>"
  const own = await send(base, "/mailboxes/alice", { headers: asAdmin })
  const headers = { ...asAdmin, "if-match": own.headers.get("etag") ?? "" }
  expectStatus(await putXml(base, "/mailboxes/alice", titled, headers), 200)
  expectStatus(await postXml(base, "/mailboxes/alice", notification("one")), 202)
})

afterAll(async () => {
  await browser?.close()
  cleanUp()
})

const expectAccessible = async (tab: Tab, name: string): Promise<void> => {
  const inspect = (look: string) => tab.inspect(`recording-${name}-${look}`)
  expect([name, await everyLookFaultsOf(tab, inspect)]).toEqual([name, []])
}

it("leads from the cluster to the messages, an actor, and how it was", async () => {
  const tab = await openTab(browser)
  const { page } = tab
  const keyboard = new Keyboard(page)
  await signIn(tab, base, adminToken)
  await page.goto(`${base}/cluster`)
  await (await keyboard.to("Messages of this node")).enter()
  expect(await tab.heading()).toBe("Messages of a node")
  await expectAccessible(tab, "messages")
  await page.goto(`${base}/cluster/messages?kind=mailbox`)
  expect(await tab.heading()).toBe("Messages of a node: mailbox")
  await keyboard.skip()
  await (await keyboard.to("mailbox/alice")).enter()
  expect(await tab.heading()).toBe("mailbox/alice")
  await expectAccessible(tab, "actor")
  const commits = page.getByRole("link", { name: "After commit" })
  expect(await commits.count()).toBe(3)
  await commits.last().click()
  expect(await tab.heading()).toBe("mailbox/alice, as it was")
  await expectAccessible(tab, "first")
  await keyboard.skip()
  await (await keyboard.to("Commit after")).enter()
  expect(await page.getByRole("main").innerText()).toContain("After commit 2 of 3")
  expect(await page.locator("mark").count()).toBeGreaterThan(0)
  await expectAccessible(tab, "second")
  await (await keyboard.to("Now")).enter()
  expect(await tab.heading()).toBe("mailbox/alice")
  await tab.close()
})
