/** What the page and the service worker have in common to register a browser at a mailbox. */

/**
 * `enter`: subscribes the browser at its push service (Push API §8) and registers it at a mailbox
 * (protocol §1.4), whose registrations have the path `collection`. A browser has one subscription
 * for all mailboxes. `remembered`: these paths, each with the path of its registration, which the
 * service worker needs when the push service ends the subscription; none where the reader's
 * settings forbid storage.
 */
export const browserRegistration = `
  const asJson = { Accept: "application/json", "Content-Type": "application/json" }
  const pathOf = (uri) => new URL(uri, location.href).pathname
  const cache = () => caches.open("registrations")
  const remembered = async () => {
    try {
      return (await (await cache()).keys()).map(({ url }) => pathOf(url))
    } catch {
      return []
    }
  }
  // Whether it was remembered.
  const forget = async (collection) => (await cache()).delete(collection)
  const answerOf = async (path, method = "GET", body = undefined) => {
    const answer = await fetch(path, { method, headers: asJson, body })
    if (answer.ok) return answer
    const { status } = answer
    throw Object.assign(new Error("the service answers " + status), { status })
  }
  const read = async (path) => (await answerOf(path)).json()
  const isMissing = ({ status }) => status === 404 || status === 410
  const subscribe = async (pushManager, applicationServerKey) => {
    const options = { userVisibleOnly: true, applicationServerKey }
    try {
      return await pushManager.subscribe(options)
    } catch (error) {
      // The service has had another key, before it was restored without its secrets.
      const old = error.name === "InvalidStateError" ? await pushManager.getSubscription() : null
      if (old === null) throw error
      await old.unsubscribe()
      return pushManager.subscribe(options)
    }
  }
  const enter = async (pushManager, collection) => {
    const { applicationServerKey } = await read(collection)
    const body = JSON.stringify(await subscribe(pushManager, applicationServerKey))
    const made = await (await answerOf(collection, "POST", body)).json()
    const path = pathOf(made.href)
    await cache().then((each) => each.put(collection, new Response(path))).catch(() => {})
    return made
  }
`
