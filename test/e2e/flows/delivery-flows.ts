/** Sending and following up, and push registrations. */
import { expect } from "vitest"
import { type ControlledReceiver, echoes, receiver, startReceiver } from "../receivers.ts"
import type { Walk } from "./walk.ts"

interface Recipients {
  readonly mailbox: string
  readonly busy: { readonly at: ControlledReceiver; readonly uri: string }
  readonly gone: { readonly at: ControlledReceiver; readonly uri: string }
}

/** Types the addresses: with a script as chips, one of which is wrong and is removed. */
const address = async (walk: Walk, uris: ReadonlyArray<string>): Promise<void> => {
  if (!walk.isScripted) return walk.fill("To", uris.join("\n"))
  await walk.keys.to("To")
  for (const uri of [...uris, "NOBODY"]) await (await walk.keys.types(uri)).press("Enter")
  await walk.shows("no http or https address")
  await walk.step("chips")
  await (await walk.keys.back("Remove NOBODY")).press("Enter")
  await walk.shows(uris.length === 1 ? "1 address." : `${uris.length} addresses.`)
}

const compose = async (
  walk: Walk,
  about: string,
  uris: ReadonlyArray<string>
): Promise<void> => {
  await address(walk, uris)
  await walk.fill("What it is about", about)
  await walk.fill("The message itself", "They are under the mat.")
  await walk.press("Name this outgoing mailbox as the sender", "Space")
  await walk.enter("Send")
  expect(await walk.tab.heading()).toBe(about)
}

const follow = async (walk: Walk, { busy, gone }: Recipients): Promise<void> => {
  await walk.appears("↻ retry")
  await walk.appears("✓ success")
  await walk.appears("✗ failed")
  await walk.step("statuses")
  await walk.enter(/attempts?$/)
  await walk.step("attempts", "Attempts: the keys")
  await walk.press("Request and answer")
  await walk.shows("Headers of the request")
  await walk.step("exchange")
  await walk.header("Outgoing")
  await walk.enter("the keys")
  await walk.enter("All attempts")
  await walk.enter("The outgoing notification")
  busy.at.answers(202)
  await walk.until("two successes", async () => {
    if (!walk.isScripted) await walk.tab.page.reload()
    return await walk.tab.page.locator("#recipients").getByText("✓ success").count() === 2
  })
  gone.at.answers(202)
  await walk.keys.skip()
  await walk.enter("Try again")
  await walk.appears("✓ sent")
  await walk.step("sent")
}

const followUp = async (walk: Walk, { mailbox }: Recipients): Promise<void> => {
  await walk.press(/^Send it again to some recipients/)
  await walk.fill("Recipients", mailbox)
  await walk.enter("Send again")
  await walk.step("sent-again")
  await walk.appears("✓ sent")
  await walk.press(/^Replace it/)
  await walk.step("unfolded")
  await walk.fill("What it is about", "the other keys")
  await walk.fill("The message itself", "They are at the neighbors'.")
  await walk.enter("Replace")
  await walk.shows("replaced")
  await walk.appears("✓ sent")
  await walk.step("replaced")
  await walk.enter("Withdraw")
  await walk.shows("withdrawn")
  await walk.step("withdrawn")
}

const replaySpan = async (walk: Walk, { gone }: Recipients): Promise<void> => {
  gone.at.answers(410)
  await walk.enter("The outgoing mailbox")
  await walk.step("listing")
  await compose(walk, "again", [gone.uri])
  await walk.appears("✗ failed")
  gone.at.answers(202)
  await walk.enter("The outgoing mailbox")
  await walk.enter("✗ failed")
  await walk.lists(1)
  await walk.step("failed-only")
  await walk.press(/^Try all failed recipients again/)
  await walk.enter("Try again")
  await walk.step("tried-again", "Tried again")
  await walk.enter("The outgoing mailbox")
}

const pauseAll = async (walk: Walk, { mailbox }: Recipients): Promise<void> => {
  await walk.enter("Pause")
  await walk.step("paused")
  if (await walk.tab.page.getByText("Send a notification").count() === 0) {
    await walk.enter("The outgoing mailbox")
  }
  await compose(walk, "later", [mailbox])
  await walk.shows("paused since")
  await walk.step("held")
  await walk.enter("The outgoing mailbox")
  await walk.enter("Resume")
  await walk.step("resumed")
  if (await walk.tab.page.getByText("Send a notification").count() === 0) {
    await walk.enter("The outgoing mailbox")
  }
  await walk.appears("✓ sent")
}

const pauseOrigins = async (walk: Walk): Promise<void> => {
  await walk.enter("Pause relays to some receivers")
  await walk.step("pauses")
  await walk.fill("Origins", "http://127.0.0.1:9")
  await walk.enter("Save")
  await walk.shows("paused since")
  await walk.step("origin-paused")
  await walk.fill("Origins", "")
  await walk.enter("Save")
  await walk.shows("Nothing is paused.")
  await walk.enter("The outgoing mailbox")
}

export const outgoingFlow = async (walk: Walk): Promise<void> => {
  const recipients = {
    mailbox: await walk.mailbox("sent-to"),
    busy: await startReceiver(),
    gone: await startReceiver()
  }
  const { busy, gone, mailbox } = recipients
  busy.at.answers(503)
  gone.at.answers(410)
  await walk.begin("/")
  await walk.header("Outgoing")
  await walk.step("before", `Outgoing mailbox of ${walk.actor.account}`)
  await compose(walk, "the keys", [mailbox, busy.uri, gone.uri])
  await walk.step("new")
  await follow(walk, recipients)
  await followUp(walk, recipients)
  await replaySpan(walk, recipients)
  await pauseAll(walk, recipients)
  await pauseOrigins(walk)
  walk.tab.expects(410)
  await walk.enter("later")
  await walk.enter("Remove")
  await walk.step("removed", `Outgoing mailbox of ${walk.actor.account}`)
}

const testAndPause = async (walk: Walk): Promise<void> => {
  await walk.enter("Send a test")
  await walk.appears("✓ delivered")
  await walk.step("tested")
  await walk.enter("What was sent, and what was answered")
  await walk.press("Request and answer")
  await walk.step("attempts", "Attempts of a push registration")
  await walk.enter("The registration")
  await walk.enter("Pause")
  await walk.appears("‖ paused")
  await walk.step("paused")
  await walk.enter("Resume")
  await walk.appears("✓ active")
  await walk.step("resumed")
}

const rotate = async (walk: Walk): Promise<void> => {
  await walk.enter("Make a new secret")
  await walk.step("rotated", "The secret of the registration")
  await walk.enter("Status of the registration")
  await walk.enter("Verify")
  await walk.appears("✓ active")
  await walk.press(/^Push again what came/)
  await walk.fill("Since", "2026-01-01T00:00:00Z")
  await walk.fill("Until", "2026-01-02T00:00:00Z")
  await walk.enter("Push again")
  await walk.appears("✓ active")
  await walk.press(/^Check the signature of a push/)
  await walk.step("unfolded")
  await walk.fill("Header fields", "webhook-id: none")
  await walk.fill("Body", "{}")
  await walk.enter("Check the signature")
  await walk.step("signature", "The signature of a push")
  await walk.enter("Status of the registration")
}

export const registrationFlow = async (walk: Walk): Promise<void> => {
  const origin = await receiver((received, response) => {
    if (!echoes(received, response)) response.writeHead(204).end()
  })
  const mailbox = await walk.mailbox("pushed", "before")
  await walk.begin(new URL(mailbox).pathname)
  await walk.enter("Push registrations")
  await walk.step("none", "Push registrations")
  await walk.fill("Callback", `${origin}/hook`)
  await walk.enter("Register")
  await walk.step("secret", "The secret of the registration")
  await walk.enter("Status of the registration")
  await walk.appears("✓ active")
  await walk.step("active", "A push registration")
  await testAndPause(walk)
  await rotate(walk)
  await walk.enter("All registrations")
  await walk.step("listed")
  await walk.enter(`${new URL(origin).host}/hook`)
  walk.tab.expects(410)
  await walk.enter("End")
  await walk.appears("There is nothing here.")
  await walk.step("ended", "Push registrations")
}
