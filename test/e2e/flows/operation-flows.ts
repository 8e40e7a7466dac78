/** Signing in, accounts, and the pages of the operator. */
import { expect } from "vitest"
import type { Walk } from "./walk.ts"

const signIn = async (walk: Walk, token: string): Promise<void> => {
  await walk.fill("Account", walk.actor.account)
  await walk.fill("Token", token)
  await walk.enter("Sign in")
}

/** Begins without a session. */
export const signInFlow = async (walk: Walk): Promise<void> => {
  const { account, token } = walk.actor
  const mailbox = await walk.mailbox("own", "a secret")
  walk.tab.expects(401)
  await walk.begin(new URL(mailbox).pathname)
  await walk.step("stranger")
  await walk.fill("What it is about", "from a stranger")
  await walk.fill("The message itself", "Hello.")
  await walk.enter("Deposit")
  await walk.step("deposited", "Deposited")
  await walk.enter("Back to the mailbox")
  await walk.enter("Sign in to read")
  await walk.step("form", "Sign in")
  await signIn(walk, "rst_wrong")
  await walk.step("wrong")
  await walk.fill("Token", token)
  await walk.enter("Sign in")
  await walk.lists(2)
  await walk.step("mailbox")
  await walk.header(account)
  await walk.step("account", `Account ${account}`)
  await walk.enter("Its browsers")
  await walk.shows("this browser")
  await walk.step("browsers", `Browsers of ${account}`)
  await walk.header(`Sign out ${account}`)
  await walk.step("signed-out", "Signed out")
  await walk.enter("Sign in")
  await signIn(walk, token)
  await walk.begin(`/accounts/${account}/browser-sessions`)
  await walk.enter("Sign out everywhere")
  await walk.step("signed-out-everywhere", "Signed out")
  await walk.header("Mailboxes")
  await walk.step("needed", "Sign in")
}

/** Revokes a token of an account, then removes the account: a press opens each form. */
const remove = async (walk: Walk, name: string): Promise<void> => {
  await walk.enter("for a script")
  await walk.press(/^Revoke this token/)
  await walk.step("revoke", `Token of ${name}`)
  await walk.enter("Revoke")
  await walk.step("revoked", `Tokens of ${name}`)
  await walk.enter("The account")
  await walk.press("Remove this account")
  await walk.step("remove", `Account ${name}`)
  await walk.enter("Remove the account")
  await walk.step("removed", "Accounts")
}

export const accountFlow = async (walk: Walk): Promise<void> => {
  const name = walk.named("new")
  await walk.begin("/admin")
  await walk.step("admin", "Administration")
  await walk.enter("Accounts")
  await walk.step("accounts", "Accounts")
  await walk.fill("Name", name)
  await walk.choose("Role", "quotes")
  await walk.enter("Create")
  await walk.step("created", `Account ${name}`)
  await walk.enter("The account")
  await walk.step("account", `Account ${name}`)
  await walk.fill("Name", "for a script")
  await walk.choose("Expires", "in 7 days")
  await walk.press("Reads mailboxes and what was sent (read)", "Space")
  await walk.enter("Create a token")
  await walk.step("token", `Token of ${name}`)
  await walk.enter("The account")
  await walk.fill("Mailbox", "no-such-mailbox")
  walk.tab.expects(409).expects(422)
  await walk.enter("Change")
  await walk.step("reports-refused")
  await (await walk.keys.types("")).enter()
  await walk.keys.skip()
  await walk.step("reports", `Account ${name}`)
  await walk.enter("Its tokens")
  await walk.step("tokens", `Tokens of ${name}`)
  await walk.enter("for a script")
  await walk.step("token-again", `Token of ${name}`)
  await walk.enter("The account")
  await walk.enter("Its browsers")
  await walk.step("browsers", `Browsers of ${name}`)
  await walk.enter("The account")
  await remove(walk, name)
}

const audit = async (walk: Walk): Promise<void> => {
  await walk.enter("Audit log")
  await walk.step("audit", "Audit log")
  await walk.press("Show only")
  await walk.fill("Account", walk.actor.account)
  await walk.choose("Outcome", "done")
  await walk.enter("Show")
  await walk.step("audit-filtered", "Audit log")
}

const block = async (walk: Walk): Promise<void> => {
  const host = `${walk.named("spam")}.example`
  await walk.begin("/admin")
  await walk.enter("Reports")
  await walk.step("reports", "Reports")
  await walk.enter("Blocks")
  await walk.step("blocks", "Blocked by the service")
  await walk.fill("Host", host)
  await walk.choose("Ends", "in a day")
  await walk.fill("Reason", "spam")
  await walk.enter("Block")
  await walk.step("block")
  if (await walk.tab.page.getByRole("heading", { name: "Block of" }).count() === 0) {
    await walk.enter(host)
  }
  await walk.enter("Remove")
  await walk.step("unblocked", "Blocked by the service")
}

export const administrationFlow = async (walk: Walk): Promise<void> => {
  await walk.begin("/admin")
  await walk.enter("Limits")
  await walk.step("limits", "Limits")
  await walk.begin("/admin")
  await walk.enter("Settings")
  await walk.step("settings", "Settings")
  await walk.begin("/admin")
  await audit(walk)
  await block(walk)
}

/** A script draws the charts, whose values the arrow keys show; without one a table has them. */
const readCharts = async (walk: Walk): Promise<void> => {
  if (!walk.isScripted) {
    await walk.press("Values as a table")
    await walk.tab.page.getByRole("region", { name: "Values of the charts" }).waitFor()
    return walk.step("values")
  }
  const caption = walk.tab.page.locator(".drawn figcaption > span").first()
  const isTimed = async (): Promise<boolean> => /^\d+:\d\d:\d\d/.test(await caption.innerText())
  await walk.keys.to(/^Charts: the arrow keys/)
  expect(await isTimed()).toBe(false)
  await walk.keys.press("ArrowLeft")
  await walk.until("the values of a time", isTimed)
  await walk.step("values")
  await walk.keys.press("Escape")
  await walk.until("the latest values", async () => !await isTimed())
}

export const clusterFlow = async (walk: Walk): Promise<void> => {
  await walk.begin("/")
  await walk.header("Cluster")
  await walk.step("cluster", "Cluster")
  await walk.enter("account")
  await walk.step("actors", "Actors: account")
  await walk.fill("Id of an actor", walk.actor.account)
  await walk.enter("Open")
  await walk.step("actor", `account/${walk.actor.account}`)
  await walk.enter(/^\d+$/)
  await walk.step("shard", "Cluster")
  await walk.begin("/admin")
  await walk.enter("History of this node")
  await walk.appears("Requests")
  await walk.step("history", "History of a node")
  await readCharts(walk)
  await walk.enter("The cluster")
  expect(await walk.tab.heading()).toBe("Cluster")
}
