/**
 * The icons of the pages: strokes in the color of the text beside them. They say nothing that the
 * text does not say, so that assistive technology skips them. They are inline, since the policy of
 * a page allows no other picture without a request.
 */
import { iconShapes } from "./packages/index.ts"
import { type Html, html, raw } from "./template.ts"

export type IconName = keyof typeof iconShapes

/** An icon, which stands before the text that it illustrates. */
export const icon = (name: IconName): Html =>
  html`<svg class="icon" xmlns="http://www.w3.org/2000/svg" width="16" height="16"
viewBox="0 0 24 24" aria-hidden="true">${raw(iconShapes[name])}</svg>` // of the sources
