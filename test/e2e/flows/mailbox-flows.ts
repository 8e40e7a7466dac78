/** Mailboxes and cabinets: opening, depositing, reading, searching, removing. */
import { expect } from "vitest"
import { createHmac } from "node:crypto"
import { expectStatus, send } from "../client.ts"
import type { Walk } from "./walk.ts"

const deposit = async (walk: Walk, about: string): Promise<void> => {
  await walk.fill("What it is about", about)
  await walk.fill("The message itself", `All there is to say of ${about}.`)
  await walk.enter("Deposit")
  expect(await walk.tab.heading()).toBe("Deposited")
}

/** Opens a mailbox whose form is refused once; goes to its page. */
const open = async (walk: Walk, name: string, title: string): Promise<void> => {
  walk.tab.expects(422)
  await walk.step("collection", "Your mailboxes")
  await walk.fill("Name", name)
  await walk.fill("Title", title)
  await walk.choose("Who may deposit", "anybody with an account")
  await walk.fill("Kept after retrieval for", "soon")
  await walk.choose("Webhooks", "GitHub")
  await walk.enter("Open")
  await walk.step("refused")
  // The field with the fault has the focus.
  await walk.tab.page.locator("[name=retention]:focus").waitFor()
  await (await walk.keys.types("P1D")).enter()
  await walk.step("opened", title)
  await walk.keys.skip()
  await walk.enter("read it")
  await walk.step("empty", title)
  for (const setting of ["anybody", "P1D", "github"]) {
    if (setting !== "anybody") await walk.shows(setting)
  }
}

/** The keys of the list, of a page with a script. */
const useKeys = async (walk: Walk): Promise<void> => {
  const { page } = walk.tab
  await walk.keys.press("j", "j")
  expect(await walk.keys.focusedName()).toBe("the second")
  await walk.keys.press("r")
  await page.getByText("Marked as read.").waitFor()
  await walk.step("key-read")
  await walk.keys.press("r")
  await page.getByText("Marked as unread.").waitFor()
  await walk.keys.press("?")
  await page.locator("#keys").waitFor()
  await walk.step("keys")
  await walk.keys.press("Escape")
  // The page may have changed meanwhile: its script then finds the notification again.
  await walk.until("the focus", async () => await walk.keys.focusedName() === "the second")
  await walk.keys.press("/")
  expect(await walk.keys.focusedName()).toBe("Search in this mailbox")
}

/** Removes from the list: with a script it can be undone. */
const remove = async (walk: Walk): Promise<void> => {
  if (walk.isScripted) {
    await walk.press("Remove the third")
    await walk.shows("Removed.")
    await walk.lists(2)
    await walk.step("removed")
    await (await walk.keys.back("Undo")).press("Enter")
    await walk.shows("It is back.")
    expect(await walk.keys.focusedName()).toBe("the third")
    await walk.step("undone")
    await walk.lists(3)
    await (await walk.keys.to("Remove the third")).press("Space")
    await walk.shows("Removed.")
    await walk.tab.page.getByText("Removed.").waitFor({ state: "detached" })
  } else {
    await walk.enter("Remove the third")
    await walk.step("asked", "Remove “the third”?")
    await walk.enter("Keep it")
    await walk.lists(3)
    await walk.enter("Remove the third")
    await walk.enter("Remove")
  }
  await walk.lists(2)
  await walk.step("removed-for-good")
}

const readOne = async (walk: Walk, title: string): Promise<void> => {
  await walk.enter("the second")
  await walk.step("notification", "the second")
  await walk.shows("All there is to say of the second.")
  await walk.press("All fields")
  await walk.shows("description")
  await walk.step("fields")
  await walk.enter("Mark as unread the second")
  await walk.step("unread")
  if (await walk.tab.heading() !== title) await walk.enter("The mailbox")
  await walk.enter("the first")
  await walk.step("first", "the first")
  await walk.enter("Remove the first")
  if (walk.isScripted) {
    await walk.shows("Removed.")
    await walk.lists(1)
    await (await walk.keys.back("Undo")).press("Enter")
    await walk.shows("It is back.")
    await walk.lists(2)
    await walk.press("Remove the first")
    await walk.shows("Removed.")
    await walk.tab.page.getByText("Removed.").waitFor({ state: "detached" })
  } else {
    await walk.step("asked-on-its-page", "Remove “the first”?")
    await walk.enter("Remove")
  }
  await walk.lists(1)
  await walk.step("removed-on-its-page", title)
}

/** Changes the settings by their form, which is folded, and removes the mailbox by another. */
const changeSettings = async (walk: Walk, name: string): Promise<void> => {
  await walk.press("Change the settings")
  await walk.fill("Title", `Later ${name}`)
  await walk.choose("Receipts", "to the sender, when a notification has arrived")
  await walk.step("settings")
  await walk.enter("Save")
  await walk.step("settings-changed", `Later ${name}`)
  await walk.press("Remove this mailbox, with all that is in it")
  await walk.fill("Name of the mailbox", "another")
  walk.tab.expects(422)
  await walk.enter("Remove the mailbox")
  await walk.step("removal-refused")
  await walk.fill("Name of the mailbox", name)
  await walk.enter("Remove the mailbox")
  await walk.step("mailbox-removed", "Your mailboxes")
}

const replaceSecrets = async (walk: Walk): Promise<void> => {
  await walk.enter("Replace both")
  await walk.step("secrets", "The mailbox's new secrets")
  if (!walk.isScripted) return
  await walk.press("Copy the password")
  await walk.shows("Copied.")
  await walk.step("copied")
}

export const mailboxFlow = async (walk: Walk): Promise<void> => {
  const name = walk.named("post")
  const title = `The post of ${name}`
  await walk.begin("/mailboxes")
  await open(walk, name, title)
  for (const about of ["the first", "the second", "the third"]) {
    await deposit(walk, about)
    if (about === "the first") await walk.step("deposited")
    await walk.enter("Back to the mailbox")
  }
  await walk.lists(3)
  await walk.step("list", title)
  if (walk.isScripted) await useKeys(walk)
  else await walk.keys.to("Search in this mailbox")
  await (await walk.keys.types("second")).enter()
  await walk.lists(1)
  await walk.step("found")
  await walk.keys.skip()
  await (await walk.keys.to("Search in this mailbox")).types("nothing of the kind")
  await walk.enter("Search")
  await walk.step("nothing-found")
  await walk.enter("all")
  await walk.lists(3)
  await remove(walk)
  await walk.keys.skip()
  await readOne(walk, title)
  await walk.enter("● unread")
  await walk.lists(1)
  await walk.step("unread-only")
  await walk.enter("Mark all as read in this mailbox")
  await walk.step("all-read")
  await replaceSecrets(walk)
  await walk.begin(`/mailboxes/${name}?read=`)
  await changeSettings(walk, name)
}

/** What the settings on the page say of webhooks. */
const webhooksOf = ({ tab: { page } }: Walk): Promise<string> =>
  page.locator("dt", { hasText: "Webhooks" }).locator("xpath=following-sibling::dd[1]").innerText()

const githubBody = JSON.stringify({
  action: "opened",
  repository: { full_name: "acme/shop", html_url: "https://github.example/acme/shop" },
  issue: { title: "The bell is broken" }
})

/** A sender sends a webhook while the page of the mailbox is open: it is there, with its tag. */
const receive = async (walk: Walk, mailbox: string, secret: string): Promise<void> => {
  const signature = createHmac("sha256", secret).update(githubBody).digest("hex")
  const sent = await send(walk.base, new URL(mailbox).pathname, {
    method: "POST",
    headers: { "content-type": "application/json", "x-hub-signature-256": `sha256=${signature}` },
    body: githubBody
  })
  expectStatus(sent, 202)
  await walk.appears("acme/shop opened The bell is broken")
  await walk.shows("builds")
  await walk.step("received")
}

/** The webhooks of a mailbox: one fault, then a sender with a secret, which sends, then none. */
export const webhookFlow = async (walk: Walk): Promise<void> => {
  walk.tab.expects(422)
  const mailbox = await walk.mailbox("hooked")
  await walk.begin(new URL(mailbox).pathname)
  await walk.press("Webhooks")
  await walk.step("unfolded")
  await walk.choose("Sender", "GitHub")
  await walk.fill("Tags", "builds")
  await walk.fill("New secret for signatures", "short")
  await walk.enter("Save")
  await walk.step("refused")
  // No page repeats a secret: the user types it again, in the field with the fault.
  await walk.tab.page.locator("[name=secret][aria-invalid=true]:focus").waitFor()
  await walk.shows("“New secret for signatures” must have")
  const secret = "a-secret-of-the-sender"
  await (await walk.keys.types(secret)).enter()
  await walk.keys.skip()
  expect(await webhooksOf(walk)).toBe("github, signed")
  await walk.step("saved")
  await receive(walk, mailbox, secret)
  await walk.press("Webhooks")
  await walk.choose("Sender", "another service: the templates below")
  await walk.fill("Tags", "")
  await walk.press("Remove the secret: webhooks need no signature", "Space")
  await walk.enter("Save")
  await walk.keys.skip()
  expect(await webhooksOf(walk)).toBe("none")
  await walk.press("Webhooks")
  await walk.step("removed")
  expect(await walk.tab.page.getByText("Remove the secret").count()).toBe(0)
}

/** "Notify me" in a browser that shows no notifications, and in one without a push service. */
export const notifyFlow = async (walk: Walk): Promise<void> => {
  const mailbox = await walk.mailbox("notified")
  const { page } = walk.tab
  const button = page.getByRole("button", { name: "Notify me" })
  await walk.begin(new URL(mailbox).pathname)
  if (!walk.isScripted) {
    expect(await button.count()).toBe(0)
    return walk.step("without-a-script")
  }
  await button.waitFor()
  await walk.press("Notify me")
  await walk.shows("This browser does not show notifications of this site.")
  await walk.step("forbidden")
  // Chromium has no push service in a context of its own, which is incognito, and says so.
  walk.tab.tolerates("does not support the Push API in incognito mode")
  await page.context().grantPermissions(["notifications"])
  await walk.keys.press("Space")
  await walk.shows("This browser is not registered: ")
  await walk.step("without-a-push-service")
  expect(await button.count()).toBe(1)
}

export const cabinetFlow = async (walk: Walk): Promise<void> => {
  const first = await walk.mailbox("first", "about keys")
  const second = await walk.mailbox("second", "about locks")
  await walk.begin("/")
  await walk.header("Cabinets")
  await walk.step("collection", "Your cabinets")
  await walk.fill("Title", "Keys & locks")
  await walk.fill("Mailboxes", `${first}\n${second}`)
  await walk.enter("Create")
  await walk.step("created", "Keys & locks")
  await walk.enter("The notifications in it")
  await walk.lists(2)
  await walk.step("read")
  await walk.fill("Only notifications with this text", "keys")
  await walk.enter("Change")
  if (await walk.tab.page.locator(".entries > li").count() === 0) {
    await walk.enter("The notifications in it")
  }
  await walk.lists(1)
  await walk.step("changed")
  await walk.enter("about keys")
  await walk.step("notification")
  await walk.header("Cabinets")
  await walk.enter("Keys & locks")
  // The open page may notice the removal before the browser leaves it.
  walk.tab.expects(410)
  await walk.enter("Remove")
  await walk.step("removed", "Your cabinets")
}

export const contentFlow = async (walk: Walk): Promise<void> => {
  const address = await walk.mailbox("published", "a text that is published")
  await walk.begin(new URL(address).pathname)
  await deposit(walk, "published by the form")
  await walk.header("Content")
  await walk.step("everybodys", "Content")
  await walk.enter("everybody's, oldest first")
  await walk.step("oldest-first")
  await walk.enter("of clients without an account")
  await walk.step("without-account")
  await walk.header(walk.actor.account)
  await walk.step("account", `Account ${walk.actor.account}`)
  await walk.enter(/ of .*iB$/)
  await walk.step("own", `Content of ${walk.actor.account}`)
  await walk.enter(/^Delete the content/)
  await walk.step("deleted")
}
