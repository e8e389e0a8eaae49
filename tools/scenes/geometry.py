"""A fixed camera over flat ground, and the drawing primitives that its view of things becomes.

World: x right, y up, z forward, metres; the camera is at (0, height, 0) and looks down by `pitch`. Image: v runs from 0 (top) to 1 (bottom), u from 0 to `aspect`,
so both have the same scale and the picture may be squeezed to any pixel shape afterwards.

A primitive is a row of WIDTH numbers:
  0        kind: 0 capsule, 1 convex quad
  1..12    capsule: u0 v0 r0 u1 v1 r1; quad: four outward half-planes (nu, nv, c)
  13..15   colour;  16 alpha (negative: light that is added);  17 softness of the border
  18, 19   capsule: strength of the rounding and side of the light; quad: gradient and the v where it is zero
"""

from dataclasses import dataclass

import numpy as np

WIDTH = 20


@dataclass
class Camera:
    height: float
    pitch: float
    focal: float
    aspect: float

    def __post_init__(self):
        self.cos, self.sin = np.cos(self.pitch), np.sin(self.pitch)

    def project(self, points):
        """(..., 3) world points to (..., 3): u, v and the scale in image heights a metre (0 behind the camera)."""
        x, y, z = points[..., 0], points[..., 1] - self.height, points[..., 2]
        depth = z * self.cos - y * self.sin
        near = np.maximum(depth, 0.2)
        scale = self.focal / near
        return np.stack([self.aspect / 2 + x * scale, 0.5 - (z * self.sin + y * self.cos) * scale, np.where(depth > 0.2, scale, 0)], axis=-1)

    def ground(self, u, v):
        """The ground point seen at (u, v), or None above the horizon or too far away."""
        right, up = (u - self.aspect / 2) / self.focal, (0.5 - v) / self.focal
        y, z = up * self.cos - self.sin, up * self.sin + self.cos
        if y > -0.02:
            return None
        reach = -self.height / y
        return np.array([right * reach, z * reach])

    @property
    def horizon(self):
        return 0.5 - self.focal * np.tan(self.pitch) if self.pitch < 1.4 else -10.0


def rows(*leading):
    return np.zeros((*leading, WIDTH), np.float32)


def capsules(a, b, radius_a, radius_b, colour, alpha=1.0, soft=0.006, rounding=0.5, side=-0.5):
    """Capsules between projected points a and b (..., 3) with radii in metres."""
    out = rows(*a.shape[:-1])
    out[..., 1:3], out[..., 4:6] = a[..., :2], b[..., :2]
    out[..., 3], out[..., 6] = radius_a * a[..., 2], radius_b * b[..., 2]
    out[..., 13:16] = colour
    out[..., 16] = alpha * ((a[..., 2] > 0) & (b[..., 2] > 0))
    out[..., 17], out[..., 18], out[..., 19] = soft, rounding, side
    return out


def quads(corners, colour, alpha=1.0, soft=0.005, gradient=0.0, level=0.5, one_sided=False):
    """Convex quads from corners (..., 4, 2 or 3) in the image; `one_sided` drops those that are seen from behind."""
    points = corners[..., :2]
    follow = np.roll(points, -1, axis=-2)
    edge = follow - points
    area = 0.5 * np.sum(points[..., 0] * follow[..., 1] - follow[..., 0] * points[..., 1], axis=-1)
    sign = np.where(area >= 0, 1.0, -1.0)[..., None, None]
    normal = np.stack([edge[..., 1], -edge[..., 0]], axis=-1) * sign
    length = np.linalg.norm(normal, axis=-1, keepdims=True)
    normal = np.where(length > 1e-6, normal / np.maximum(length, 1e-6), 0)
    out = rows(*points.shape[:-2])
    out[..., 0] = 1
    planes = np.concatenate([normal, -np.sum(normal * points, axis=-1, keepdims=True)], axis=-1)
    planes[..., 2] = np.where(length[..., 0] > 1e-6, planes[..., 2], -1)
    out[..., 1:13] = planes.reshape(*planes.shape[:-2], 12)
    out[..., 13:16] = colour
    shown = np.abs(area) > 1e-6
    if one_sided:
        shown &= area < 0
    if corners.shape[-1] == 3:
        shown &= (corners[..., 2] > 0).all(axis=-1)
    out[..., 16] = alpha * shown
    out[..., 17], out[..., 18], out[..., 19] = soft, gradient, level
    return out


BOX = np.array([[sx, sy, sz] for sy in (0, 1) for sx, sz in ((-1, -1), (1, -1), (1, 1), (-1, 1))], np.float32)
# Corners of the faces, so that a face seen from outside has a negative area (v runs downward).
FACES = ((0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7), (4, 5, 6, 7))
FACE_NORMALS = np.array([[0, 0, -1], [1, 0, 0], [0, 0, 1], [-1, 0, 0], [0, 1, 0]], np.float32)


def box_faces(camera, centre, yaw, size, base=0.0, taper=(1.0, 1.0), shift=0.0):
    """Faces of boxes on the ground: (..., 5, 4, 3) projected corners and (..., 5) brightness by a fixed light.

    `size` is (length, height, width); the length runs along the heading (sin yaw, cos yaw). `taper` narrows the top (length, width), `shift` moves it forward.
    """
    length, height, width = size
    local = BOX.copy()
    top = local[:, 1] > 0
    side = local[:, 0] * width / 2 * np.where(top, taper[1], 1)
    ahead = local[:, 2] * length / 2 * np.where(top, taper[0], 1) + np.where(top, shift, 0)
    up = base + local[:, 1] * height
    sin, cos = np.sin(yaw)[..., None], np.cos(yaw)[..., None]
    x = centre[..., 0, None] + side * cos + ahead * sin
    z = centre[..., 1, None] - side * sin + ahead * cos
    corners = np.stack([x, np.broadcast_to(up, x.shape), z], axis=-1)
    projected = camera.project(corners)
    faces = projected[..., np.array(FACES), :]
    n = FACE_NORMALS
    nx = n[:, 0] * cos + n[:, 2] * sin
    nz = -n[:, 0] * sin + n[:, 2] * cos
    light = 0.62 + 0.28 * n[:, 1] - 0.18 * nx - 0.12 * nz
    return faces, light
