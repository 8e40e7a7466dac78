/** The badge of the installed pages (Badging API), which page and service worker set. */

/**
 * `showBadge`: how many notifications have come to the mailboxes whose pages were not seen since.
 * The notifications that the browser shows carry these numbers, so no request is needed. A badge of
 * 0 is none.
 */
export const appBadge = `
  const showBadge = async (registration) => {
    const shown = await registration.getNotifications()
    const count = shown.reduce((sum, { data }) => sum + (data?.count ?? 0), 0)
    await navigator.setAppBadge?.(count).catch(() => {})
  }
`
