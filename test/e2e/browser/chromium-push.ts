/**
 * Web Push in Chromium, which takes no other push service than Google's: pages are given the
 * subscription, and DevTools deliver the pushes.
 */
import type { Page } from "playwright-core"
import type { Browser as Subscriber } from "../../actors/web-push.ts"
import { within } from "../process.ts"

const withinMs = 60_000

/** What a push subscription at an endpoint is, as JSON. */
export const subscriptionAt = (endpoint: string, { auth, p256dh }: Subscriber): string =>
  JSON.stringify({ endpoint, keys: { p256dh, auth } })

/**
 * A script of a page that subscribes the browser at an endpoint, and keeps in `localStorage` with
 * which options it was asked.
 */
export const subscribingScript = (endpoint: string, subscriber: Subscriber): string => `
  const read = () => JSON.parse(localStorage.getItem("subscription"))
  PushManager.prototype.getSubscription = async () => read()
  PushManager.prototype.subscribe = async (options) => {
    localStorage.setItem("options", JSON.stringify(options))
    localStorage.setItem("subscription", JSON.stringify(${subscriptionAt(endpoint, subscriber)}))
    return read()
  }`

/** Delivers a push to the service worker of an origin, as the browser's own push service does. */
export const deliverPush = async (page: Page, origin: string, data: string): Promise<void> => {
  const session = await page.context().newCDPSession(page)
  const found = new Promise<string>((resolve) => {
    session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations: [first] }) => {
      if (first !== undefined) resolve(first.registrationId)
    })
  })
  await session.send("ServiceWorker.enable")
  const registrationId = await within(withinMs, "the registration of the worker", found)
  await session.send("ServiceWorker.deliverPushMessage", { origin, registrationId, data })
  await session.detach()
}
