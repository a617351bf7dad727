/**
 * Keeps the keyboard somewhere: when what it was on disappears or is switched off, its neighbour takes the focus, or the
 * heading of what it stood in. A key pressed once more must not do something else: a button of another kind takes the
 * focus only within the same small group, and never when a row has left its list.
 *
 * Inside an element with `data-guided` (a question's card, a panel that leads step by step) a key pressed once more must
 * not act on what came in its place: when its `data-step` has changed, or it is gone, the focus goes to a heading.
 */

const controls =
  'a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), summary, [tabindex="0"]';

/** A focused control, and its place among the controls of each element around it, innermost first. */
type Spot = { control: HTMLElement; name: string; around: { element: Element; index: number }[]; guide: Guide | null };

/** The guided element around a control, its step, and its place among those of its kind. */
type Guide = { element: HTMLElement; kind: string; step: string; index: number };

/**
 * Watches `root` until the returned function is called. It acts a frame late and only while nothing has the focus, so
 * whoever moves the focus on purpose comes first.
 */
export function keepFocus(root: HTMLElement): () => void {
  let spot: Spot | null = null;
  let frame = 0;

  const focused = ({ target }: FocusEvent) => {
    spot = target instanceof HTMLElement && root.contains(target) ? spotOf(target, root) : null;
  };
  // A click on nothing leaves the focus on purpose.
  const pressed = () => (spot = null);
  const changed = () => {
    if (!spot) return;
    if (isUsable(spot.control)) {
      if (spot.control === document.activeElement) spot = spotOf(spot.control, root);
      return;
    }
    const lost = spot;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      if (!isUsable(lost.control) && isNowhere(lost.control)) successorOf(lost, root)?.focus();
    });
  };

  const observer = new MutationObserver(changed);
  observer.observe(root, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] });
  document.addEventListener("focusin", focused);
  document.addEventListener("pointerdown", pressed, true);
  return () => {
    cancelAnimationFrame(frame);
    observer.disconnect();
    document.removeEventListener("focusin", focused);
    document.removeEventListener("pointerdown", pressed, true);
  };
}

function spotOf(control: HTMLElement, root: HTMLElement): Spot {
  const around: Spot["around"] = [];
  for (let element = control.parentElement; element; element = element.parentElement) {
    around.push({ element, index: [...element.querySelectorAll(controls)].indexOf(control) });
    if (element === root) break;
  }
  return { control, name: nameOf(control), around, guide: guideOf(control, root) };
}

function guideOf(control: HTMLElement, root: HTMLElement): Guide | null {
  const element = control.closest<HTMLElement>("[data-guided]");
  if (!element) return null;
  const { guided: kind = "", step = "" } = element.dataset;
  return { element, kind, step, index: guidedOf(kind, root).indexOf(element) };
}

function guidedOf(kind: string, root: HTMLElement): HTMLElement[] {
  return [...root.querySelectorAll<HTMLElement>("[data-guided]")].filter((one) => one.dataset["guided"] === kind);
}

function successorOf(lost: Spot, root: HTMLElement): HTMLElement | null {
  const { guide, around } = lost;
  if (!guide) return neighbourOf(lost);
  if (root.contains(guide.element) && guide.element.dataset["step"] === guide.step) {
    const end = around.findIndex(({ element }) => element === guide.element);
    return neighbourOf({ ...lost, around: around.slice(0, end + 1) });
  }
  const left = guidedOf(guide.kind, root);
  const next = root.contains(guide.element) ? guide.element : left[Math.min(guide.index, left.length - 1)];
  return next?.querySelector<HTMLElement>(':is(h2, h3)[tabindex="-1"]') ?? root.querySelector<HTMLElement>("h1");
}

/**
 * In what is left around: the nearest of the same name (the ✕ of another item), else a link before, else the heading,
 * else the control before.
 */
function neighbourOf({ name, around, guide }: Spot): HTMLElement | null {
  const leftList = around.some(({ element }) => !element.isConnected && element.matches("li, tr"));
  for (const { element, index } of around) {
    if (!element.isConnected) continue;
    const left = [...element.querySelectorAll<HTMLElement>(controls)];
    const distance = (control: HTMLElement) => Math.abs(left.indexOf(control) - index);
    const same = left.filter((control) => nameOf(control) === name && (guide || !control.closest("[data-guided]")));
    const [nearest] = same.sort((one, other) => distance(one) - distance(other));
    if (nearest) return nearest;
    const before = left[Math.min(Math.max(index - 1, 0), left.length - 1)];
    if (before?.matches("a[href], summary")) return before;
    const heading = element.querySelector<HTMLElement>(':is(h1, h2, h3)[tabindex="-1"]');
    if (heading) return heading;
    if (before && !leftList) return before;
  }
  return null;
}

function nameOf(control: HTMLElement): string {
  return `${control.tagName} ${control.textContent.trim()}`;
}

function isUsable(control: HTMLElement): boolean {
  return control.isConnected && !control.matches(":disabled");
}

function isNowhere(lost: HTMLElement): boolean {
  const active = document.activeElement;
  return active === null || active === document.body || active === lost;
}
