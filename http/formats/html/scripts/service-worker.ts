/** The service worker, which a browser runs for each push, also when no page is open. */
import { appBadge } from "./app-badge.ts"
import { browserRegistration } from "./browser-registration.ts"

export const serviceWorkerPath = "/service-worker.js"

/** The icon of notifications and of the installed page. */
export const iconPath = "/icon.png"

/**
 * There is one notification for each mailbox: its latest, and how many there were since it was
 * seen, so that a sender cannot fill the screen. A push may stand for several, and one that comes
 * twice counts once.
 */
const showing = `
  const nameOf = (path) => path.split("/").at(-1)
  const showTest = (path) =>
    registration.showNotification(nameOf(path), {
      body: "Test: notifications of this mailbox arrive here.",
      // What has arrived stays.
      tag: path + "#test",
      icon: "${iconPath}",
      data: { page: path, latest: path, count: 0, collection: path + "/registrations" }
    })
  const showPush = async (push) => {
    const { count: pushed = "1", deleted, mailbox = "/mailboxes", notification, test } = push
    const path = pathOf(mailbox)
    if (test === "true") return showTest(path)
    const isRemoved = deleted === "true"
    const latest = pathOf(notification?.href ?? mailbox)
    const [earlier] = await registration.getNotifications({ tag: path })
    const isRepeated = earlier?.data.latest === latest
    const added = isRepeated ? 0 : Number(pushed)
    const count = isRemoved ? 1 : (earlier?.data.count ?? 0) + added
    const received = Date.parse(notification?.received)
    await registration.showNotification(nameOf(path) + (count > 1 ? " (" + count + ")" : ""), {
      body: isRemoved
        ? "This mailbox has been removed."
        : notification?.description ?? "A notification has arrived.",
      tag: path,
      renotify: !isRepeated,
      icon: "${iconPath}",
      data: {
        page: isRemoved ? "/mailboxes" : count > 1 ? path : latest,
        latest,
        count,
        collection: path + "/registrations"
      },
      ...Number.isNaN(received) ? {} : { timestamp: received }
    })
    await showBadge(registration)
    const windows = await clients.matchAll({ type: "window", includeUncontrolled: true })
    // A page that is seen closes what is shown of its mailbox.
    for (const each of windows) each.postMessage("shown")
  }
  const pushOf = (data) => {
    try {
      return data.json()
    } catch {
      return {}
    }
  }
`

/** What follows a click: the page of the notification, or of the mailbox if there were more. */
const opening = `
  const openPage = async (notification) => {
    notification.close()
    await showBadge(registration)
    // A path alone could begin with two slashes, and name another host.
    const url = location.origin + notification.data.page
    const windows = await clients.matchAll({ type: "window", includeUncontrolled: true })
    const shown = windows.find((each) => each.url === url)
    return shown === undefined ? clients.openWindow(url) : shown.focus()
  }
`

/**
 * The push service has ended the subscription: the browser is registered again, paused where it
 * was. Without a signed-in account the service refuses that, and only the reader can help.
 */
const renewal = `
  const replace = async (collection) => {
    const old = await (await (await cache()).match(collection)).text()
    const { status } = await read(old).catch(() => ({}))
    const { href } = await enter(registration.pushManager, collection)
    if (pathOf(href) === old) return
    if (status === "paused") await answerOf(pathOf(href), "PUT", JSON.stringify({ status }))
    await answerOf(old, "DELETE").catch(() => {})
  }
  const showLost = (collection) => {
    const path = collection.slice(0, -"/registrations".length)
    return registration.showNotification(nameOf(path), {
      body: "This browser no longer shows what arrives here. Open the mailbox, sign in, and turn " +
        "notifications on again.",
      tag: path,
      icon: "${iconPath}",
      data: { page: path, latest: path, count: 0, collection }
    })
  }
  const enterAgain = async () => {
    for (const collection of await remembered()) {
      await replace(collection).catch(() => showLost(collection))
    }
  }
`

/**
 * `/service-worker.js` (Service Workers, Push API §10): shows each push, opens its notification,
 * and registers again when the push service has ended the subscription. It caches no page and
 * handles no request, so that pages are always those of the service.
 */
export const serviceWorker = `"use strict"
{
${browserRegistration}${appBadge}${showing}${opening}${renewal}
  // One after the other: each reads what the one before has shown.
  let last = Promise.resolve()
  const inTurn = (event, act) => {
    last = last.then(act, act)
    event.waitUntil(last)
  }
  addEventListener("install", () => void skipWaiting())
  addEventListener("push", (event) => inTurn(event, () => showPush(pushOf(event.data))))
  addEventListener("notificationclick", (event) => event.waitUntil(openPage(event.notification)))
  addEventListener("pushsubscriptionchange", (event) => inTurn(event, enterAgain))
}
`
