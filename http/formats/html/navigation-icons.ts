/**
 * The icons of the navigation: strokes on a grid of 16 by 16, in the color of the text beside them.
 * They say nothing that the text does not say, so that assistive technology skips them. They are
 * inline, since the policy of a page allows no other picture without a request.
 */
import { type Html, html } from "./template.ts"

/** The path of each icon. */
const paths = {
  mailboxes: "M2 9.5h3.5l1 2h3l1-2H14M2 9.5v4h12v-4L11.5 3h-7z",
  outgoing: "M14 2 1.5 6.5l5 3 3 5zM14 2 6.5 9.5",
  content: "M9.5 1.5h-6v13h9v-10zM9.5 1.5v3h3M6 8h4M6 11h4",
  cabinets: "M2.5 1.5h11v13h-11zM2.5 8h11M6.5 5h3M6.5 11.5h3",
  bridge: "M1 6.5h14M3 6.5v6M13 6.5v6M3 12.5a5 5 0 0 1 10 0",
  customers: "M8 7.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 14.5a5.5 5.5 0 0 1 11 0",
  quotes: "M1.5 12.5l4-4.5 3 2.5 6-7M10.5 3.5h4v4",
  queries: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.2 10.2l4.3 4.3",
  cluster: "M8 5.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM3.5 14a2 2 0 1 0 0-4 2 2 0 0 0 0 4z"
    + "M12.5 14a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7 5.3 4.5 10.2M9 5.3l2.5 4.9M5.5 12h5",
  docs: "M8 4v9.5M8 4C6.5 2.7 4 2.5 1.5 2.5V12C4 12 6.5 12.2 8 13.5c1.5-1.3 4-1.5 6.5-1.5V2.5"
    + "C12 2.5 9.5 2.7 8 4z",
  "sign-in": "M9.5 2.5h4v11h-4M1.5 8h8M6.5 5l3 3-3 3"
}

export type NavigationIcon = keyof typeof paths

/** An icon, which stands before the text that it illustrates. */
export const navigationIcon = (name: NavigationIcon): Html =>
  html`<svg class="icon" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path
d="${paths[name]}"/></svg>`
