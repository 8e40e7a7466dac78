/** The script of a mailbox's page that registers the browser. Without it a browser gets no push. */
import { appBadge } from "./app-badge.ts"
import { browserRegistration } from "./browser-registration.ts"
import { serviceWorkerPath } from "./service-worker.ts"

export const notifyScriptPath = "/notify.js"

/** What the reader sees. */
const texts = `
  const texts = {
    paused: "It is paused, and its registration resumes it.",
    suspended: "The push service has refused it. Press the button to try again.",
    lost: "This browser is no longer registered here.",
    waiting: "One moment …",
    forbidden: "This browser does not show notifications of this site. Allow them in its " +
      "settings, and try again.",
    begun: "This browser shows what arrives here, also when this page is closed.",
    failed: " It could not be registered again at: ",
    ended: "This browser no longer shows what arrives here."
  }
`

/**
 * Which registrations of the mailbox are those of this browser is what the service lists: a push
 * service, the service worker or another reader may have changed it since the page was opened.
 */
const registration = `
  const worker = () => navigator.serviceWorker.getRegistration()
  const own = async () => {
    const subscription = await (await worker())?.pushManager.getSubscription()
    if (!subscription) return []
    const { registration } = await read(collection)
    return registration.filter(({ callback }) => callback === subscription.endpoint)
  }
  // The other mailboxes may have a subscription that has ended. Returns those that still have it.
  const enterOthers = async (pushManager, endpoint) => {
    const failed = []
    for (const other of await remembered()) {
      try {
        const { registration } = await read(other)
        if (!registration.some(({ callback }) => callback === endpoint)) {
          await enter(pushManager, other)
        }
      } catch (error) {
        if (isMissing(error)) await forget(other)
        else failed.push(other.split("/").at(-2))
      }
    }
    return failed
  }
  const begin = async () => {
    if (await Notification.requestPermission() !== "granted") return texts.forbidden
    await navigator.serviceWorker.register("${serviceWorkerPath}")
    const { pushManager } = await navigator.serviceWorker.ready
    const { callback } = await enter(pushManager, collection)
    isOn = true
    const failed = await enterOthers(pushManager, callback)
    return texts.begun + (failed.length === 0 ? "" : texts.failed + failed.join(", ") + ".")
  }
  const end = async () => {
    for (const { href } of await own()) {
      await answerOf(pathOf(href), "DELETE").catch((error) => {
        if (!isMissing(error)) throw error
      })
    }
    isOn = false
    await forget(collection).catch(() => {})
    return texts.ended
  }
  const find = async () => {
    const [{ status } = {}] = await own()
    isOn = status !== undefined && status !== "suspended"
    if (status !== undefined) return texts[status] ?? ""
    return await forget(collection).catch(() => false) ? texts.lost : ""
  }
`

/** Closes what the reader sees on the page. */
const shownNotifications = `
  const closeShown = async () => {
    if (document.visibilityState !== "visible") return
    const found = await worker()
    for (const shown of await found?.getNotifications() ?? []) {
      if (shown.data?.collection === collection) shown.close()
    }
    if (found !== undefined) await showBadge(found)
  }
  const closeQuietly = () => void closeShown().catch(() => {})
`

/**
 * `/notify.js`: a button in the element with `data-registrations`, the path of a mailbox's
 * registrations, that registers this browser there, and removes it. What the browser shows of the
 * mailbox disappears when its page is seen.
 */
export const notifyScript = `"use strict"
{
  const place = document.querySelector("[data-registrations]")
  // Browsers have these in secure contexts only: over HTTPS, or on this machine.
  const isAble = "serviceWorker" in navigator && "PushManager" in window && "Notification" in window
  const collection = place?.dataset.registrations
  let isOn = false
${browserRegistration}${appBadge}${texts}${registration}${shownNotifications}
  const button = document.createElement("button")
  button.type = "button"
  button.className = "small"
  const state = document.createElement("small")
  state.setAttribute("role", "status")
  const show = (text) => {
    button.textContent = isOn ? "Stop notifications" : "Notify me"
    state.textContent = text
  }
  let isBusy = false
  const act = async (change, meanwhile, failure) => {
    if (isBusy) return
    isBusy = true
    button.setAttribute("aria-disabled", "true")
    show(meanwhile)
    try {
      show(await change())
    } catch (error) {
      show(failure + error.message + ". Reload this page, and try again.")
    }
    button.removeAttribute("aria-disabled")
    isBusy = false
  }
  button.addEventListener("click", () => void (isOn
    ? act(end, texts.waiting, "This browser may still be registered: ")
    : act(begin, texts.waiting, "This browser is not registered: ")))
  if (place !== null && isAble) {
    place.append(" ", state)
    // The button says what it does once that is known.
    void act(find, "", "Whether this browser is registered is not known: ")
      .then(() => state.before(button, " "))
    closeQuietly()
    document.addEventListener("visibilitychange", closeQuietly)
    // The service worker has shown something while the page is open.
    navigator.serviceWorker.addEventListener("message", closeQuietly)
  }
}
`
