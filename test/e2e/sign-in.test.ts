/** Signing in with a browser: deep links and the way back, tabs, ends, and no dialog. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { faultsOf } from "./browser/axe.ts"
import { launchBrowser, openTab, type Person, signIn, type Tab } from "./browser/browser.ts"
import { asAdmin, expectStatus, openMailbox, postXml, send } from "./client.ts"
import { adminToken, cleanUp, type Service, start } from "./process.ts"
import { closeReceivers, receiver } from "./receivers.ts"

let service: Service
let browser: Browser
let base: string

beforeAll(async () => {
  browser = await launchBrowser()
  service = await start({ env: { BASE_URL: "" } })
  base = `http://localhost:${service.port}`
  for (const name of ["alice", "bob"]) await openMailbox(base, name)
  const note = "<notification><item><description>The keys</description>"
    + "<url>http://peer.test/</url></item></notification>"
  expectStatus(await postXml(base, "/mailboxes/alice", note), 202)
})

afterAll(async () => {
  await browser?.close()
  closeReceivers()
  cleanUp()
})

const tokenField = (tab: Tab) => tab.page.getByLabel("Token")
const signOutButton = (tab: Tab) => tab.page.getByRole("button", { name: "Sign out admin" })
const headerLink = (tab: Tab) =>
  tab.page.getByRole("banner").getByRole("link", { name: "Sign in", exact: true })

const fillIn = async (tab: Tab, token = adminToken): Promise<void> => {
  await tab.page.getByLabel("Account").fill("admin")
  await tokenField(tab).fill(token)
  await tab.page.getByRole("main").getByRole("button", { name: "Sign in" }).click()
}

const people: ReadonlyArray<readonly [string, Person]> = [
  ["with a script", { at: "desk" }],
  ["without one, on a phone", { script: false, scheme: "dark" }]
]

it.each(people)("a deep link shows the deposit, then the mailbox (%s)", async (name, person) => {
  const tab = await openTab(browser, person)
  const { page } = tab
  const answer = await page.goto(`${base}/mailboxes/alice`)
  expect(answer?.status()).toBe(200)
  expect(answer?.headers()["link"]).toContain("rel=\"mailbox\"")
  expect(await page.locator("link[rel=mailbox]").getAttribute("href"))
    .toBe(`${base}/mailboxes/alice`)
  await page.getByRole("button", { name: "Deposit" }).waitFor()
  await tab.inspect(`sign-in-deep-link-${person.at ?? "phone"}`)
  await page.getByRole("link", { name: "Sign in to read" }).click()
  expect(await tab.heading()).toBe("Sign in")
  await tab.inspect(`sign-in-form-${person.at ?? "phone"}`)
  tab.expects(401)
  await fillIn(tab, "rst_wrong")
  // The form remembers the account, and not the token.
  expect(await page.getByLabel("Account").inputValue()).toBe("admin")
  expect(await tokenField(tab).inputValue()).toBe("")
  await tab.inspect(`sign-in-wrong-${person.at ?? "phone"}`)
  await fillIn(tab)
  expect(page.url()).toBe(`${base}/mailboxes/alice`)
  await page.getByRole("link", { name: "The keys" }).waitFor()
  await tab.inspect(`sign-in-mailbox-${person.at ?? "phone"}`)
  expect([name, await page.evaluate("document.cookie")]).toEqual([name, ""])
  await signOutButton(tab).click()
  expect(await tab.heading()).toBe("Signed out")
  await tab.inspect(`sign-in-ended-${person.at ?? "phone"}`)
  // The browser keeps no page of the account for the next person.
  await page.goBack()
  await page.getByRole("link", { name: "Sign in to read" }).waitFor()
  expect(await page.getByRole("link", { name: "The keys" }).count()).toBe(0)
  await tab.close()
})

it("a page that needs an account has the form itself, and no dialog", async () => {
  const tab = await openTab(browser)
  const { page } = tab.expects(401)
  // A dialog of the browser would fail this navigation: nobody answers it.
  const answer = await page.goto(`${base}/outgoing/admin?status=sent`)
  expect([answer?.status(), answer?.headers()["www-authenticate"]]).toEqual([401, "Bearer"])
  expect(await faultsOf(tab)).toEqual([])
  await page.setViewportSize({ width: 390, height: 844 })
  await tab.inspect("sign-in-needed")
  expect(await tab.heading()).toBe("Sign in")
  await fillIn(tab)
  expect(page.url()).toBe(`${base}/outgoing/admin?status=sent`)
  await tab.close()
})

it("two tabs share it, and both end when one signs out", async () => {
  const tab = await openTab(browser)
  await signIn(tab, base)
  const context = tab.page.context()
  const second = await context.newPage()
  await second.goto(`${base}/mailboxes/alice`)
  await second.getByRole("link", { name: "The keys" }).waitFor()
  await second.getByRole("button", { name: "Sign out admin" }).click()
  tab.expects(401)
  const answer = await tab.page.goto(`${base}/mailboxes`)
  expect(answer?.status()).toBe(401)
  await headerLink(tab).waitFor()
  await tab.close()
})

it("a form that stayed open longer than its session keeps what was typed", async () => {
  const tab = await openTab(browser)
  await signIn(tab, base)
  await tab.page.goto(`${base}/mailboxes`)
  await tab.page.getByLabel("Name").fill("typed-before")
  await tab.page.context().clearCookies()
  tab.expects(401)
  await tab.page.getByRole("button", { name: "Open" }).click()
  expect(await tab.page.getByLabel("Name").inputValue()).toBe("typed-before")
  await tab.inspect("sign-in-late")
  await tab.page.getByRole("main").getByRole("link", { name: "Sign in" }).click()
  await fillIn(tab)
  expect(tab.page.url()).toBe(`${base}/mailboxes`)
  await tab.close()
})

it("the list of browsers shows each, and ends another one's session", async () => {
  const stolen = await openTab(browser)
  await signIn(stolen, base)
  await stolen.page.goto(`${base}/mailboxes/alice`)
  await stolen.page.getByText("This page changes by itself.").waitFor()
  const owner = await openTab(browser, { at: "desk" })
  await signIn(owner, base)
  await owner.page.goto(`${base}/accounts/admin`)
  await owner.page.getByRole("link", { name: "Its browsers" }).click()
  const rows = owner.page.getByRole("region", { name: "Browsers" }).locator("tbody tr")
  const own = rows.filter({ hasText: "this browser" })
  expect(await own.innerText()).toMatch(/^Chrome \d+ on Linux/)
  await owner.inspect("sign-in-browsers")
  expect(await faultsOf(owner)).toEqual([])
  const others = rows.filter({ hasNotText: "this browser" })
  const before = await others.count()
  for (let left = before; left > 0; left -= 1) {
    await others.last().getByRole("button").click()
    await expect.poll(() => others.count()).toBe(left - 1)
  }
  // The open page of the other browser shows that it ended, without a dialog.
  stolen.expects(401)
  const answer = await stolen.page.reload()
  expect(answer?.status()).toBe(200)
  await stolen.page.getByRole("link", { name: "Sign in to read" }).waitFor()
  expect(await stolen.page.getByRole("link", { name: "The keys" }).count()).toBe(0)
  await owner.page.getByRole("button", { name: "Sign out everywhere" }).click()
  expect(await owner.heading()).toBe("Signed out")
  await Promise.all([stolen.close(), owner.close()])
})

it("a page of another origin can neither use the cookie nor sign somebody in", async () => {
  const tab = await openTab(browser)
  await signIn(tab, base)
  // A page of another port: the same site, but another origin.
  const evil = await receiver((_, response) => {
    const forms = [["/mailboxes", "name=forged"], ["/sign-out", ""], ["/sign-in", "account=admin"]]
      .map(([path, query]) =>
        `<form method="post" action="${base}${path}"><input name="${query?.split("=")[0]}"`
        + ` value="${query?.split("=")[1] ?? ""}"><button>${path}</button></form>`
      )
    response.writeHead(200, { "Content-Type": "text/html" }).end(forms.join(""))
  })
  tab.expects(403)
  for (const path of ["/mailboxes", "/sign-out", "/sign-in"]) {
    await tab.page.goto(evil)
    const answer = tab.page.waitForResponse(base + path)
    await tab.page.getByRole("button", { name: path }).click()
    expect([path, (await answer).status()]).toEqual([path, 403])
  }
  expect((await send(base, "/mailboxes/forged", { headers: asAdmin })).status).toBe(404)
  await tab.page.goto(`${base}/mailboxes`)
  await signOutButton(tab).waitFor()
  await tab.page.context().close()
})
